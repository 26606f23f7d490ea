// Binds core/order.h and core/philox.h.
#include "core/order.h"

#include <nanobind/stl/array.h>

#include <memory>

#include "bind/bind.h"
#include "core/errors.h"
#include "core/philox.h"

namespace stoker::bind {
namespace {

using Items = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>, nb::c_contig>;

Items permute(uint64_t start, uint64_t count, uint64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation order(n, seed, epoch);
  if (start > n || count > n - start) {
    throw Error(ErrorCode::kBadArgument, "Positions " + std::to_string(start) + " to " +
                                             std::to_string(start) + " + " + std::to_string(count) +
                                             " leave an order of " + std::to_string(n));
  }
  auto out = std::make_unique_for_overwrite<uint64_t[]>(count);
  {
    nb::gil_scoped_release nogil;
    for (uint64_t i = 0; i < count; ++i) out[i] = order(start + i);
  }
  nb::capsule owner(out.get(), [](void* p) noexcept { delete[] static_cast<uint64_t*>(p); });
  uint64_t* data = out.release();
  return Items(data, {static_cast<size_t>(count)}, owner);
}

}  // namespace

void register_order(nb::module_& m) {
  m.def("permute", &permute, nb::arg("start"), nb::arg("count"), nb::arg("n"), nb::arg("seed"),
        nb::arg("epoch"),
        "Items at positions start .. start + count - 1 of the order of an epoch, a bijection on 0..n-1.");
  m.def("philox", &philox, nb::arg("counter"), nb::arg("key"),
        "One block of Philox4x32-10: four words from a counter of four words and a key of two.");
}

}  // namespace stoker::bind
