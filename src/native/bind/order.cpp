// Binds core/order.
#include "core/order/order.h"

#include <nanobind/stl/array.h>

#include <algorithm>
#include <memory>
#include <span>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/order/philox.h"

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
  return filled(count, [&](std::span<uint64_t> out) {
    for (uint64_t i = 0; i < out.size(); ++i) out[i] = order(start + i);
  });
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
  m.def("philox", &philox, nb::arg("counter"), nb::arg("key"),
        "One block of Philox4x32-10: four words from a counter of four words and a key of two.");
}

}  // namespace stoker::bind
