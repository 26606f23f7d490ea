// What the binding files share. Types in, types out; no parsing and no policy lives in bind/.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>

namespace stoker::bind {

namespace nb = nanobind;

// A read-only, contiguous view of the caller's bytes. It pins the buffer, and never copies it.
using ByteView = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const uint8_t> bytes_of(const ByteView& view) {
  return {view.data(), view.size()};
}

void register_errors(nb::module_& m);
void register_records(nb::module_& m);
void register_example(nb::module_& m);
void register_jpeg(nb::module_& m);
void register_resample(nb::module_& m);
void register_order(nb::module_& m);
void register_engine(nb::module_& m);

}  // namespace stoker::bind
