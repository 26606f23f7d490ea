// Binds core/jpeg.
#include <nanobind/stl/string.h>

#include <optional>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/encode.h"
#include "core/jpeg/header.h"
#include "core/jpeg/restart_interval.h"
#include "core/jpeg/transcode.h"

namespace stoker::bind {
namespace {

using AnyPixels = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;

const char* color_name(JpegColor color) {
  switch (color) {
    case JpegColor::kGrey:
      return "grey";
    case JpegColor::kYcbcr:
      return "ycbcr";
    case JpegColor::kRgb:
      return "rgb";
    case JpegColor::kCmyk:
      return "cmyk";
    case JpegColor::kYcck:
      return "ycck";
    case JpegColor::kOther:
      return "other";
  }
  return "other";
}

nb::bytes encode(const AnyPixels& pixels, int quality, const std::string& subsampling, bool restart,
                 bool optimize) {
  const bool grey = pixels.ndim() == 2;
  if (!grey && (pixels.ndim() != 3 || pixels.shape(2) != 3)) {
    throw Error(ErrorCode::kBadArgument, "Pixels must have the shape (height, width, 3) or (height, width)");
  }
  const JpegEncodeSpec spec = encode_spec(quality, subsampling, restart, optimize);
  const Extent size = extent_of(pixels.shape(0), pixels.shape(1));
  std::vector<uint8_t> bytes;
  {
    WithoutGil nogil;
    bytes = encode_jpeg(pixels.data(), size, grey ? 1 : 3, spec);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object transcode(const ByteView& data, uint64_t max_pixels) {
  std::optional<std::vector<uint8_t>> bytes;
  {
    WithoutGil nogil;
    bytes = transcode_jpeg(bytes_of(data), max_pixels);
  }
  return bytes ? nb::object(nb::bytes(bytes->data(), bytes->size())) : nb::none();
}

template <JpegInfo (*read)(std::span<const uint8_t>)>
JpegInfo read_without_gil(const ByteView& data) {
  WithoutGil nogil;
  return read(bytes_of(data));
}

}  // namespace

void register_jpeg(nb::module_& m) {
  m.attr("DEFAULT_MAX_PIXELS") = kDefaultMaxPixels;
  nb::class_<JpegInfo>(m, "JpegInfo", "What the header of a JPEG says.")
      .def_ro("width", &JpegInfo::width, "Columns of pixels, as stored.")
      .def_ro("height", &JpegInfo::height, "Rows of pixels, as stored.")
      .def_ro("components", &JpegInfo::components, "1 grey, 3 colour, 4 inks.")
      .def_ro("bits", &JpegInfo::bits, "Bits per component; only 8 can be decoded.")
      .def_prop_ro(
          "color", [](const JpegInfo& i) { return color_name(i.color); }, "grey ycbcr rgb cmyk ycck other")
      .def_prop_ro(
          "subsampling", [](const JpegInfo& i) { return subsampling_name(i); }, "4:2:0 and so on.")
      .def_ro("progressive", &JpegInfo::progressive)
      .def_ro("arithmetic", &JpegInfo::arithmetic)
      .def_ro("lossless", &JpegInfo::lossless)
      .def_ro("restart_interval", &JpegInfo::restart_interval, "MCUs between restart markers; 0 without any.")
      .def_ro("orientation", &JpegInfo::orientation, "EXIF orientation 1..8; 1 when absent.");
  m.def("probe_jpeg", &read_without_gil<probe_jpeg>, nb::arg("data"), "Read the header of a JPEG.");
  m.def("check_jpeg", &read_without_gil<check_jpeg>, nb::arg("data"),
        "Read the header and walk every marker to the end of the image; a file cut short, or of a kind that "
        "is not decoded, raises ImageError.");
  m.def("encode_jpeg", &encode, nb::arg("pixels"), nb::arg("quality"), nb::arg("subsampling") = "4:2:0",
        nb::kw_only(), nb::arg("restart") = false, nb::arg("optimize") = true,
        "Encode pixels of shape (height, width, 3) or (height, width) as baseline JPEG, with restart markers "
        "if "
        "asked, and with Huffman tables of its own or the standard ones.");
  m.def("transcode_jpeg", &transcode, nb::arg("data"), nb::arg("max_pixels") = kDefaultMaxPixels,
        nb::sig(
            "def transcode_jpeg(data: collections.abc.Buffer, max_pixels: int = 134217728) -> bytes | None"),
        "The same coefficients as baseline JPEG with optimised tables and restart markers; None where that "
        "would change pixels.");
  m.attr("LOSSLESS_TILES") = kLosslessTiles;
  m.attr("ENCODED_TILES") = kEncodedTiles;
  m.def("restart_interval", &restart_interval, nb::arg("mcus_per_row"), nb::arg("tiles"),
        "MCUs between two restart markers, for about so many tiles across; both numbers are at least 1.");
}

}  // namespace stoker::bind
