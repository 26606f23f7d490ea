// Binds core/transforms/reencode.h.
#include "core/transforms/reencode.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>
#include <vector>

#include "bind/bind.h"
#include "bind/decode_mode.h"
#include "bind/encode_spec.h"
#include "bind/filter.h"
#include "core/jpeg/transcode.h"

namespace stoker::bind {
namespace {

// What a recipe says of every image.
class JpegResizer {
 public:
  JpegResizer(const std::string& filter, int quality, const std::string& subsampling, bool restart,
              const std::string& decode, uint64_t max_pixels)
      : restart_(restart) {
    spec_.filter = filter_named(filter);
    spec_.encode = encode_spec(quality, subsampling);
    spec_.decode = decode_mode_named(decode);
    spec_.max_pixels = max_pixels;
  }

  nb::bytes run(const ByteView& data, Box part, int width, int height) const {
    std::vector<uint8_t> bytes;
    {
      WithoutGil nogil;
      ReencodeSpec spec = spec_;
      spec.part = rect_of(part);
      spec.size = {width, height};
      if (restart_) add_restart_markers(spec.encode, spec.size, static_cast<int>(kRgbBytes));
      thread_local Reencoder reencoder;  // threads come and go slowly, and its memory is worth keeping
      bytes = reencoder.run(bytes_of(data), spec);
    }
    return nb::bytes(bytes.data(), bytes.size());
  }

 private:
  ReencodeSpec spec_;
  bool restart_;
};

}  // namespace

void register_reencode(nb::module_& m) {
  nb::class_<JpegResizer>(
      m, "JpegResizer", "Decodes, cuts, resizes and encodes JPEGs in one go. Immutable; safe in any thread.")
      .def(nb::init<const std::string&, int, const std::string&, bool, const std::string&, uint64_t>(),
           nb::kw_only(), nb::arg("filter"), nb::arg("quality"), nb::arg("subsampling"),
           nb::arg("restart") = false, nb::arg("decode") = "exact", nb::arg("max_pixels") = kDefaultMaxPixels)
      .def("run", &JpegResizer::run, nb::arg("data"), nb::arg("part"), nb::arg("width"), nb::arg("height"),
           "The part (left, top, right, bottom) of a JPEG as a JPEG of width x height; with decode exact, "
           "the bytes of "
           "decode_jpeg, resize and encode_jpeg.");
}

}  // namespace stoker::bind
