#include "bind/bind.h"

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

DecodeMode decode_mode_named(const std::string& name) {
  if (name == "exact") return DecodeMode::kExact;
  if (name == "fast") return DecodeMode::kFast;
  throw Error(ErrorCode::kBadArgument, "decode is '" + name + "'; it must be 'exact' or 'fast'");
}

Filter filter_named(const std::string& name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "box") return Filter::kBox;
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "lanczos") return Filter::kLanczos;
  throw Error(ErrorCode::kBadArgument,
              "Unknown filter " + name + "; use nearest, box, bilinear, bicubic or lanczos");
}

JpegEncodeSpec encode_spec(int quality, const std::string& subsampling, bool restart) {
  JpegEncodeSpec spec;
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
