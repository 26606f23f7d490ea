// Binds core/order.
#include "core/order/order.h"

#include <nanobind/stl/array.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/order/philox.h"
#include "core/order/sampling.h"

namespace stoker::bind {
namespace {

using Items = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>, nb::c_contig>;

void check_positions(uint64_t start, uint64_t count, uint64_t n) {
  if (start > n || count > n - start) {
    throw Error(ErrorCode::kBadArgument, "Positions " + std::to_string(start) + " to " +
                                             std::to_string(start) + " + " + std::to_string(count) +
                                             " leave an order of " + std::to_string(n));
  }
}

// An array that `fill(span)` has filled, without the interpreter's lock.
template <typename Fill>
Items filled(uint64_t count, const Fill& fill) {
  auto out = std::make_unique_for_overwrite<uint64_t[]>(count);
  {
    WithoutGil nogil;
    fill(std::span(out.get(), count));
  }
  return give<Items>(std::move(out), {static_cast<size_t>(count)});
}

Items permute(uint64_t start, uint64_t count, uint64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation order(n, seed, epoch);
  check_positions(start, count, n);
  return filled(count, [&](std::span<uint64_t> out) { order.take(start, out); });
}

Items permute_blocks(uint64_t start, uint64_t count, uint64_t n, uint64_t block, uint64_t window,
                     uint64_t seed, uint64_t epoch) {
  const BlockPermutation order(n, block, window, seed, epoch);
  check_positions(start, count, n);
  return filled(count, [&](std::span<uint64_t> out) { order.take(start, out); });
}

using GivenItems = nb::ndarray<nb::numpy, const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Order>
Items positions_in(const Order& order, const GivenItems& items, uint64_t n) {
  const std::span given(items.data(), items.size());
  if (std::ranges::any_of(given, [n](uint64_t item) { return item >= n; })) {
    throw Error(ErrorCode::kBadArgument, "An item is outside an order of " + std::to_string(n));
  }
  return filled(given.size(), [&](std::span<uint64_t> out) {
    std::ranges::transform(given, out.begin(), [&](uint64_t item) { return order.position_of(item); });
  });
}

Items positions(const GivenItems& items, uint64_t n, uint64_t seed, uint64_t epoch) {
  return positions_in(Permutation(n, seed, epoch), items, n);
}

Items positions_of_blocks(const GivenItems& items, uint64_t n, uint64_t block, uint64_t window, uint64_t seed,
                          uint64_t epoch) {
  return positions_in(BlockPermutation(n, block, window, seed, epoch), items, n);
}

using Counters = nb::ndarray<const uint32_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;

Items philox_each(const Counters& counters, std::array<uint32_t, 2> key) {
  return filled(counters.shape(0), [&](std::span<uint64_t> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      const uint32_t* row = counters.data() + 4 * i;
      const auto words = philox({row[0], row[1], row[2], row[3]}, key);
      out[i] = uint64_t{words[0]} << 32 | words[1];
    }
  });
}

void check_lengths(size_t wanted, std::initializer_list<size_t> lengths) {
  if (std::ranges::any_of(lengths, [wanted](size_t length) { return length != wanted; })) {
    throw Error(ErrorCode::kBadArgument, "The arrays differ in length");
  }
}

Items permute_each(const GivenItems& positions, const GivenItems& sizes, const GivenItems& seeds,
                   const GivenItems& epochs) {
  check_lengths(positions.size(), {sizes.size(), seeds.size(), epochs.size()});
  return filled(positions.size(), [&](std::span<uint64_t> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      const Permutation order(sizes.data()[i], seeds.data()[i], epochs.data()[i]);
      check_positions(positions.data()[i], 1, order.size());
      out[i] = order(positions.data()[i]);
    }
  });
}

Items draw_weighted(const GivenItems& positions, const GivenItems& ends, uint64_t seed) {
  const WeightedGroups groups({ends.data(), ends.size()});
  return filled(positions.size(), [&](std::span<uint64_t> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = groups.draw(positions.data()[i], seed).group;
  });
}

nb::tuple draw_members(const GivenItems& positions, const GivenItems& ends, const GivenItems& sizes,
                       uint64_t seed) {
  check_lengths(ends.size(), {sizes.size()});
  const WeightedGroups weighted({ends.data(), ends.size()});
  std::vector<uint64_t> groups(positions.size()), members(positions.size());
  {
    WithoutGil nogil;
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto drawn = weighted.draw(positions.data()[i], seed);
      groups[i] = drawn.group;
      members[i] = reduce(drawn.word, sizes.data()[drawn.group]);
    }
  }
  return nb::make_tuple(give(std::move(groups)), give(std::move(members)));
}

Items spread_weighted(const GivenItems& slots, const GivenItems& ends, uint64_t size, uint64_t offset) {
  const WeightedGroups groups({ends.data(), ends.size()});
  const std::span given(slots.data(), slots.size());
  if (offset >= groups.total() ||
      std::ranges::any_of(given, [size](uint64_t slot) { return slot >= size; })) {
    throw Error(ErrorCode::kBadArgument, "A slot or the offset is out of range");
  }
  return filled(given.size(), [&](std::span<uint64_t> out) {
    std::ranges::transform(given, out.begin(), [&](uint64_t slot) { return groups.at(slot, size, offset); });
  });
}

}  // namespace

void register_order(nb::module_& m) {
  m.def("permute", &permute, nb::arg("start"), nb::arg("count"), nb::arg("n"), nb::arg("seed"),
        nb::arg("epoch"),
        "Items at positions start .. start + count - 1 of the order of an epoch, a bijection on 0..n-1.");
  m.def("permute_blocks", &permute_blocks, nb::arg("start"), nb::arg("count"), nb::arg("n"), nb::arg("block"),
        nb::arg("window"), nb::arg("seed"), nb::arg("epoch"),
        "The same for a block shuffle: samples shuffled within windows of randomly ordered blocks.");
  m.def("positions", &positions, nb::arg("items"), nb::arg("n"), nb::arg("seed"), nb::arg("epoch"),
        "The inverse of permute: where each item lies in the order.");
  m.def("positions_in_blocks", &positions_of_blocks, nb::arg("items"), nb::arg("n"), nb::arg("block"),
        nb::arg("window"), nb::arg("seed"), nb::arg("epoch"),
        "The inverse of permute_blocks: where each item lies in the order.");
  m.def("permute_each", &permute_each, nb::arg("positions"), nb::arg("sizes"), nb::arg("seeds"),
        nb::arg("epochs"), "Items at positions of orders of their own, each of a size, a seed and an epoch.");
  m.def("draw_weighted", &draw_weighted, nb::arg("positions"), nb::arg("ends"), nb::arg("seed"),
        "Independent draws among groups, given the running sums of their weights.");
  m.def(
      "draw_members", &draw_members, nb::arg("positions"), nb::arg("ends"), nb::arg("sizes"), nb::arg("seed"),
      nb::sig("def draw_members(positions: numpy.typing.NDArray[numpy.uint64], ends: "
              "numpy.typing.NDArray[numpy.uint64], sizes: numpy.typing.NDArray[numpy.uint64], seed: int) -> "
              "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]"),
      "The same groups, and an independent draw of a member of each, of as many as it has.");
  m.def("spread_weighted", &spread_weighted, nb::arg("slots"), nb::arg("ends"), nb::arg("size"),
        nb::arg("offset"),
        "The groups at slots of `size` evenly spaced points over the weights; the first point lies at "
        "offset / size of the total.");
  m.def("philox_each", &philox_each, nb::arg("counters"), nb::arg("key"),
        nb::sig("def philox_each(counters: numpy.typing.NDArray[numpy.uint32], key: tuple[int, int]) -> "
                "numpy.typing.NDArray[numpy.uint64]"),
        "The first two words of a block for each row of counters (N, 4), the first as the high half: (N,).");
  m.def("philox", &philox, nb::arg("counter"), nb::arg("key"),
        "One block of Philox4x32-10: four words from a counter of four words and a key of two.");
}

}  // namespace stoker::bind
