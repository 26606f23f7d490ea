#include "core/webp/decoder.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/exif.h"
#include "core/base/little_endian.h"
#include "core/base/scratch_bytes.h"

namespace stoker {
namespace {

// Of a macroblock of 16 x 16 pixels in a lossy image: its prediction modes alone take 3.4.
constexpr uint64_t kLeastBitsOfBlock = 3;
constexpr uint64_t kBlockSide = 16;

// More than a demuxer and the entry of a frame take.
constexpr size_t kDemuxerBytes = 1024;
constexpr size_t kRiffHeader = 12, kChunkHeader = 8, kExtendedBytes = 10;

// The colours of two pixels of a lossy image come from one sample, and from those beside it.
constexpr int32_t kMargin = 2;

[[noreturn]] void refuse_damaged(const std::string& what) {
  throw Error(ErrorCode::kBadImage, "The WebP cannot be decoded whole: " + what);
}

std::string describe(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_BITSTREAM_ERROR:
      return "its data are damaged";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it has a feature that libwebp does not know";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "its data end early";
    default:
      return "libwebp says " + std::to_string(static_cast<int>(status));
  }
}

// The part of `region` that lies in `frame`; its width or height is 0 or less if there is none.
Rect common(Rect region, Rect frame) {
  const int32_t x = std::max(region.x, frame.x), y = std::max(region.y, frame.y);
  return {x, y, std::min(region.x + region.width, frame.x + frame.width) - x,
          std::min(region.y + region.height, frame.y + frame.height) - y};
}

// Whether `frame` is lossy and its alpha was filtered. libwebp undoes some filters from the first row that it
// is asked for, though they lean on the rows above.
bool has_filtered_alpha(std::span<const uint8_t> frame) {
  constexpr int kFilterBits = 0x0c;
  return frame.size() > kChunkHeader && std::memcmp(frame.data(), "ALPH", 4) == 0 &&
         (frame[kChunkHeader] & kFilterBits) != 0;
}

// What has to be decoded for `part` of an image to be as in the whole, and begin at even numbers.
Rect with_margin(Rect part, Rect frame) {
  const int32_t x = std::max(0, part.x - kMargin) & ~1, y = std::max(0, part.y - kMargin) & ~1;
  return {x, y, std::min(frame.width, part.x + part.width + kMargin) - x,
          std::min(frame.height, part.y + part.height + kMargin) - y};
}

struct FreeDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, FreeDemuxer>;

Demuxer demuxed(std::span<const uint8_t> file) {
  const WebPData data{file.data(), file.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  Demuxer demuxer(WebPDemuxPartial(&data, &state));
  if (demuxer == nullptr && state == WEBP_DEMUX_PARSE_ERROR) {
    // Damage, or no memory: libwebp does not say which. Without memory this throws, or the second try
    // succeeds.
    static_cast<void>(std::make_unique<uint8_t[]>(kDemuxerBytes));
    demuxer.reset(WebPDemuxPartial(&data, &state));
    if (demuxer == nullptr) refuse_damaged("its chunks do not fit together");
  }
  if (state != WEBP_DEMUX_DONE) refuse_damaged("the file is cut short");
  return demuxer;
}

// What the first chunk of a kind behind the header holds; nothing where there is none. A demuxer would take
// memory for each of millions of chunks.
std::span<const uint8_t> chunk_of(std::span<const uint8_t> chunks, std::string_view kind) {
  while (chunks.size() >= kChunkHeader) {
    const size_t size = load_le32(chunks.data() + kind.size()), left = chunks.size() - kChunkHeader;
    if (size > left) return {};
    if (std::memcmp(chunks.data(), kind.data(), kind.size()) == 0) return chunks.subspan(kChunkHeader, size);
    chunks = chunks.subspan(kChunkHeader + std::min(left, size + size % 2));
  }
  return {};
}

}  // namespace

struct WebpDecoder::Libwebp {
  Extent canvas;
  Rect frame;                      // on the canvas
  std::span<const uint8_t> bytes;  // of the frame
  bool is_open = false;
  bool has_alpha = false;
  ScratchBytes pixels;
  ScratchBytes pasted;  // a region that the frame does not fill

  void open(std::span<const uint8_t> file, uint64_t max_pixels);
  RgbxView decode(Rect region);

 private:
  void find_frame(std::span<const uint8_t> file);
  void refuse_missing_data() const;
  RgbxView decode_frame(Rect part);
  RgbxView paste(Rect part, Rect region);
};

void WebpDecoder::Libwebp::open(std::span<const uint8_t> file, uint64_t max_pixels) {
  is_open = false;
  find_frame(file);
  refuse_more_pixels(canvas, max_pixels);
  refuse_missing_data();
  is_open = true;
}

void WebpDecoder::Libwebp::find_frame(std::span<const uint8_t> file) {
  const Demuxer demuxer = demuxed(file);
  has_alpha = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
  canvas = {static_cast<int32_t>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH)),
            static_cast<int32_t>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT))};
  WebPIterator first;
  if (WebPDemuxGetFrame(demuxer.get(), 1, &first) == 0) refuse_damaged("it has no frame");
  frame = {first.x_offset, first.y_offset, first.width, first.height};
  bytes = {first.fragment.bytes, first.fragment.size};
  WebPDemuxReleaseIterator(&first);
}

// A short lossless frame need not be incomplete: if all pixels are the same, it has no data for them.
void WebpDecoder::Libwebp::refuse_missing_data() const {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features);
  if (status != VP8_STATUS_OK) refuse_damaged(describe(status));
  constexpr int kLossy = 1;
  const uint64_t blocks = (static_cast<uint64_t>(frame.width) + kBlockSide - 1) / kBlockSide *
                          ((static_cast<uint64_t>(frame.height) + kBlockSide - 1) / kBlockSide);
  if (features.format != kLossy || bytes.size() >= blocks * kLeastBitsOfBlock / 8) return;
  throw Error(ErrorCode::kBadImage, "The WebP is cut short: its header claims " +
                                        std::to_string(frame.width) + " x " + std::to_string(frame.height) +
                                        " pixels, and " + std::to_string(bytes.size()) +
                                        " bytes cannot hold them");
}

RgbxView WebpDecoder::Libwebp::decode(Rect region) {
  is_open = false;
  const Rect part = common(region, frame);
  if (part == region)
    return decode_frame({region.x - frame.x, region.y - frame.y, region.width, region.height});
  return paste(part, region);
}

// `part` of the frame, in its own coordinates.
RgbxView WebpDecoder::Libwebp::decode_frame(Rect part) {
  Rect decoded = with_margin(part, frame);
  if (has_filtered_alpha(bytes)) {
    decoded.height += decoded.y;
    decoded.y = 0;
  }
  const size_t stride = static_cast<size_t>(decoded.width) * kRgbxBytes;
  const size_t size = stride * static_cast<size_t>(decoded.height);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) refuse_damaged("libwebp is of another version than its header");
  config.options.use_cropping = 1;
  config.options.crop_left = decoded.x;
  config.options.crop_top = decoded.y;
  config.options.crop_width = decoded.width;
  config.options.crop_height = decoded.height;
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels.take(size + kRgbxPadding);
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = size;
  VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  if (status ==
      VP8_STATUS_BITSTREAM_ERROR) {  // damage, or no memory for a plane of alpha: as in find_frame()
    static_cast<void>(std::make_unique_for_overwrite<uint8_t[]>(
        kRgbxBytes * static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height)));
    status = WebPDecode(bytes.data(), bytes.size(), &config);
  }
  WebPFreeDecBuffer(&config.output);
  // libwebp reports a lack of memory for the rows between its decoder and the output as an abort by the user.
  if (status == VP8_STATUS_OUT_OF_MEMORY || status == VP8_STATUS_USER_ABORT) throw std::bad_alloc();
  if (status != VP8_STATUS_OK) refuse_damaged(describe(status));
  const size_t skip =
      static_cast<size_t>(part.y - decoded.y) * stride + static_cast<size_t>(part.x - decoded.x) * kRgbxBytes;
  return {config.output.u.RGBA.rgba + skip, stride, {part.width, part.height}};
}

// A region of which the frame fills only `part`.
RgbxView WebpDecoder::Libwebp::paste(Rect part, Rect region) {
  const size_t stride = static_cast<size_t>(region.width) * kRgbxBytes;
  const size_t size = stride * static_cast<size_t>(region.height);
  if (part.width <= 0 || part.height <= 0) {
    uint8_t* const black = pixels.take(size + kRgbxPadding);
    std::memset(black, 0, size);
    return {black, stride, {region.width, region.height}};
  }
  const RgbxView from = decode_frame({part.x - frame.x, part.y - frame.y, part.width, part.height});
  uint8_t* const out = pasted.take(size + kRgbxPadding);
  std::memset(out, 0, size);
  for (int32_t y = 0; y < part.height; ++y) {
    std::memcpy(out + static_cast<size_t>(part.y - region.y + y) * stride +
                    static_cast<size_t>(part.x - region.x) * kRgbxBytes,
                from.row(y), static_cast<size_t>(part.width) * kRgbxBytes);
  }
  return {out, stride, {region.width, region.height}};
}

WebpDecoder::WebpDecoder() : libwebp_(std::make_unique<Libwebp>()) {}

WebpDecoder::~WebpDecoder() = default;

Extent WebpDecoder::open(std::span<const uint8_t> bytes, uint64_t max_pixels) {
  libwebp_->open(bytes, max_pixels);
  return libwebp_->canvas;
}

RgbxView WebpDecoder::decode(Rect region) {
  if (!libwebp_->is_open) throw Error(ErrorCode::kBadArgument, "decode() needs an open() before it");
  refuse_outside(region, libwebp_->canvas);
  return libwebp_->decode(region);
}

bool WebpDecoder::has_alpha() const {
  return libwebp_->has_alpha;
}

void WebpDecoder::check() {
  if (!libwebp_->is_open) throw Error(ErrorCode::kBadArgument, "check() needs an open() before it");
  libwebp_->decode(libwebp_->frame);
}

int webp_orientation(std::span<const uint8_t> file) {
  // RIFF, a length, WEBP; then VP8X with flags, without which libwebp reads no metadata.
  if (file.size() < kRiffHeader + kChunkHeader + kExtendedBytes) return 1;
  const size_t length = size_t{load_le32(file.data() + 4)} + kChunkHeader;
  const std::span<const uint8_t> header = file.subspan(kRiffHeader);
  if (std::memcmp(header.data(), "VP8X", 4) != 0 || length < kRiffHeader) return 1;
  const std::span<const uint8_t> chunks = file.first(std::min(file.size(), length)).subspan(kRiffHeader);
  const uint8_t flags = header[kChunkHeader];
  return orientation_in((flags & EXIF_FLAG) != 0 ? chunk_of(chunks, "EXIF") : std::span<const uint8_t>{},
                        (flags & XMP_FLAG) != 0 ? chunk_of(chunks, "XMP ") : std::span<const uint8_t>{});
}

bool has_webp() {
  return true;
}

}  // namespace stoker
