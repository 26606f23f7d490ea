// In place of decoder.cpp where the core is built without libwebp.
#include "core/base/errors.h"
#include "core/webp/decoder.h"

namespace stoker {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kBadImage,
              "This build of Stoker reads no WebP: libwebp was not there when it was built");
}

}  // namespace

struct WebpDecoder::Libwebp {};

WebpDecoder::WebpDecoder() = default;
WebpDecoder::~WebpDecoder() = default;

Extent WebpDecoder::open(std::span<const uint8_t>, uint64_t) {
  refuse();
}

RgbxView WebpDecoder::decode(Rect) {
  refuse();
}

bool WebpDecoder::has_alpha() const {
  refuse();
}

void WebpDecoder::check() {
  refuse();
}

int webp_orientation(std::span<const uint8_t>) {
  refuse();
}

bool has_webp() {
  return false;
}

}  // namespace stoker
