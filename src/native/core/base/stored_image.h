// One image as a record or a file holds it, before anything is decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/base/orientation.h"
#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"

namespace stoker {

enum class ImageEncoding {
  kFile,  // a JPEG, a PNG or a WebP, which its bytes say
  kRaw,   // pixels end to end
};

enum class TensorOrder {
  kHwc,  // red, green, blue of one pixel side by side
  kChw,  // all of red, then all of green, then all of blue
};

// The edges of an annotated object in fractions of the image; as stored, so that they may be anything.
struct ObjectBox {
  float xmin = 0.0F;
  float ymin = 0.0F;
  float xmax = 1.0F;
  float ymax = 1.0F;
};

// Of a pixel. An edge that was a whole number of pixels is stored as a float32 fraction, which may lead back
// to a little more or less; what lies between the two is nothing of the object.
inline constexpr double kEdgeTolerance = 1.0 / 1024;

// An annotated object with its class; -1: none.
struct LabelledBox {
  ObjectBox box;
  int64_t label = -1;
};

class EntryPoints;

// Borrows the bytes. `size`, `order` and `mode` are those of a raw image, of which `bytes` has exactly
// size.width x size.height x pixel_bytes(mode). Only of RGB the channels may be planes.
struct StoredImage {
  std::span<const uint8_t> bytes;
  ImageEncoding encoding = ImageEncoding::kFile;
  Extent size = {};
  TensorOrder order = TensorOrder::kHwc;
  PixelMode mode = PixelMode::kRgb;
  std::optional<ObjectBox> object = {};  // which part of what is stored is meant; nothing: all of it
  Orientation orientation = {};          // how it is turned before anything else
  EntryPoints* entries = nullptr;        // of a JPEG, where they are kept
};

// Whether a raw image has pixels, and as many bytes as its size asks for.
inline bool fits(const StoredImage& image) {
  if (image.size.width < 1 || image.size.height < 1) return false;
  const auto pixels =
      static_cast<uint64_t>(image.size.width) * static_cast<uint64_t>(image.size.height);  // below 2^62
  const size_t pixel = pixel_bytes(image.mode);
  return image.bytes.size() % pixel == 0 && image.bytes.size() / pixel == pixels;
}

}  // namespace stoker
