#include "bind/bind.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/jpeg/restart_interval.h"

namespace stoker::bind {

std::string system_path(nb::handle path) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &encoded) == 0) throw nb::python_error();
  const nb::bytes owner = nb::steal<nb::bytes>(encoded);
  return {owner.c_str(), owner.size()};
}

nb::object text(const std::string& value) {
  return nb::steal(
      PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), "surrogateescape"));
}

std::shared_ptr<nb::callable> hold(nb::callable function) {
  return {new nb::callable(std::move(function)), [](nb::callable* last) {
            const WithGil gil;
            delete last;
          }};
}

std::string words_of(nb::handle error) {
  const auto message = nb::steal(PyObject_Str(error.ptr()));
  const auto encoded = nb::steal(
      message.is_valid() ? PyUnicode_AsEncodedString(message.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!encoded.is_valid()) {
    PyErr_Clear();
    return {};
  }
  return {PyBytes_AS_STRING(encoded.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(encoded.ptr()))};
}

PixelMode pixel_mode_named(const std::string& name) {
  for (const PixelMode mode : {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16}) {
    if (name == name_of(mode)) return mode;
  }
  throw Error(ErrorCode::kBadArgument, "mode is '" + name + "'; it must be 'RGB', 'L', 'RGBA' or 'I;16'");
}

std::unique_ptr<uint8_t[]> memory_for_pixels(size_t bytes) {
  auto memory = std::make_unique_for_overwrite<uint8_t[]>(bytes);
#ifdef MADV_HUGEPAGE
  constexpr size_t kWorthIt = size_t{4} << 20;
  if (bytes >= kWorthIt) {
    // What begins on a page is asked for; a refusal costs nothing but time.
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t skipped = (page - reinterpret_cast<uintptr_t>(memory.get()) % page) % page;
    madvise(memory.get() + skipped, bytes - skipped, MADV_HUGEPAGE);
  }
#endif
  return memory;
}

nb::object give_pixels(std::unique_ptr<uint8_t[]> pixels, Extent size, PixelMode mode) {
  const auto height = static_cast<size_t>(size.height), width = static_cast<size_t>(size.width);
  const auto bits = static_cast<uint8_t>(mode == PixelMode::kI16 ? 16 : 8);
  const size_t shape[] = {height, width, channels_of(mode)};
  nb::capsule owner(pixels.get(), [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  return nb::cast(nb::ndarray<nb::numpy>(pixels.release(), 3, shape, owner, nullptr,
                                         {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), bits, 1}));
}

DecodeMode decode_mode_named(const std::string& name) {
  if (name == "exact") return DecodeMode::kExact;
  if (name == "fast") return DecodeMode::kFast;
  throw Error(ErrorCode::kBadArgument, "decode is '" + name + "'; it must be 'exact' or 'fast'");
}

JpegEncodeSpec encode_spec(int quality, const std::string& subsampling, bool restart, bool optimize) {
  JpegEncodeSpec spec;
  spec.optimize = optimize;
  spec.quality = quality;
  if (restart) spec.restart_tiles = kEncodedTiles;
  if (subsampling == "4:2:0") return spec;
  spec.vertical_sampling = 1;
  if (subsampling == "4:2:2") return spec;
  spec.horizontal_sampling = 1;
  if (subsampling == "4:4:4") return spec;
  throw Error(ErrorCode::kBadArgument, "Unknown subsampling " + subsampling + "; use 4:4:4, 4:2:2 or 4:2:0");
}

}  // namespace stoker::bind
