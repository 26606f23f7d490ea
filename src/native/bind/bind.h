// What the binding files share. Types in, types out; no parsing and no policy lives in bind/.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"

namespace stoker::bind {

namespace nb = nanobind;

// A read-only, contiguous view of the caller's bytes. It pins the buffer, and never copies it.
using ByteView = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

inline std::span<const uint8_t> bytes_of(const ByteView& view) {
  return {view.data(), view.size()};
}

// A path as the operating system wants it, which need not be UTF-8.
std::string system_path(nb::handle path);

// The other way round: bytes that are no UTF-8 come back as os.fsdecode() gives them.
nb::object text(const std::string& value);

// The Python exception for an error of the core. Needs the GIL.
nb::object exception_of(const std::exception_ptr& error);

// (path, record, offset), as the where() of every source of samples gives it.
inline nb::tuple place(const Where& where) {
  return nb::make_tuple(text(where.path), where.record, where.offset == kUnknown ? 0 : where.offset);
}

// A vector that numpy owns from now on.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> give(std::vector<T> values) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* data = held->data();
  const size_t count = held->size();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  held.release();
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {count}, owner);
}

void register_errors(nb::module_& m);
void register_records(nb::module_& m);
void register_example(nb::module_& m);
void register_jpeg(nb::module_& m);
void register_resample(nb::module_& m);
void register_reencode(nb::module_& m);
void register_order(nb::module_& m);
void register_sample_source(nb::module_& m);
void register_record_set(nb::module_& m);
void register_file_set(nb::module_& m);
void register_color(nb::module_& m);
void register_view(nb::module_& m);
void register_finished_batch(nb::module_& m);
void register_engine(nb::module_& m);
void register_caches(nb::module_& m);
void register_remote(nb::module_& m);

}  // namespace stoker::bind
