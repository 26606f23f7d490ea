// In place of decoder.cpp where the core is built without libpng.
#include "core/base/errors.h"
#include "core/png/decoder.h"

namespace stoker {
namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorCode::kBadImage,
              "This build of Stoker reads no PNG: libpng was not there when it was built");
}

}  // namespace

struct PngDecoder::State {};

PngDecoder::PngDecoder() = default;
PngDecoder::~PngDecoder() = default;

Extent PngDecoder::open(std::span<const uint8_t>, uint64_t, PixelMode) {
  refuse();
}

bool PngDecoder::is_deep() const {
  refuse();
}

void PngDecoder::start(Rect) {
  refuse();
}

RgbxRows PngDecoder::next() {
  refuse();
}

RgbxView PngDecoder::decode(Rect) {
  refuse();
}

void PngDecoder::check() {
  refuse();
}

int png_orientation(std::span<const uint8_t>) {
  refuse();
}

bool has_png() {
  return false;
}

}  // namespace stoker
