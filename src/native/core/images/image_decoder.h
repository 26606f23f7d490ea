// Regions of an image file of any format that the core decodes; which one it is, its bytes decide.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/orientation.h"
#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/base/scratch_bytes.h"
#include "core/jpeg/decoder.h"
#include "core/png/decoder.h"
#include "core/webp/decoder.h"

namespace stoker {

enum class ImageFormat {
  kJpeg,
  kPng,
  kWebp,
  kOther,  // also a format that this core was built without
};

// The format of a file by its first bytes, damaged or not.
ImageFormat format_of(std::span<const uint8_t> file);

// The orientation in the metadata of a file, 1 to 8; 1 if there is none, and for other formats. Throws
// kBadImage for a damaged header.
int exif_orientation(std::span<const uint8_t> file);

// Decodes regions of one image after another. One per thread; it keeps its scratch memory. Throws what the
// decoder of the format does; another file is an error of JpegDecoder.
class ImageDecoder {
 public:
  // `file` must live until the last row was decoded. Its pixels come as `mode` lies in RGBX; I;16 throws
  // kBadImage for a PNG with a palette, as Pillow does. They come turned by `orientation`, and so are the
  // size and the regions.
  Extent open(std::span<const uint8_t> file, uint64_t max_pixels = kDefaultMaxPixels,
              PixelMode mode = PixelMode::kRgb, Orientation orientation = {});

  // Begins to decode `region` of the opened image, once per open(). `shrink` is 1 for an image that does not
  // shrink; `entries` as JpegDecoder takes them.
  void start(Rect region, int32_t shrink = 1, EntryPoints* entries = nullptr);

  // The next rows of the region, until the last one has come: of JPEG and PNG as their decoders give them, of
  // WebP, and of an image that is turned, all at once.
  RgbxRows next();

  // Instead of both: all rows, which live until the next open().
  RgbxView decode(Rect region, int32_t shrink = 1);

  // Instead of decode(): throws what decode() of the whole image would.
  void check();

  // Whether it is known of the opened image, in mode RGBA, that alpha is 255 everywhere.
  bool is_opaque() const { return mode_ == PixelMode::kRgba && converts_; }

  // The largest of 8, 4, 2 and 1 by which the opened image can be shrunk.
  int32_t most_shrink() const;

 private:
  Extent open_as_stored(std::span<const uint8_t> file, uint64_t max_pixels);
  void start_as_stored(Rect region, int32_t shrink, EntryPoints* entries);
  RgbxRows next_as_stored();
  RgbxView decode_as_stored(Rect region, int32_t shrink);
  RgbxRows next_turned();
  RgbxView in_mode(RgbxView view);

  ImageFormat format_ = ImageFormat::kJpeg;  // of the opened image
  Orientation orientation_;
  Extent size_;  // as it is stored
  PixelMode mode_ = PixelMode::kRgb;
  bool converts_ = false;  // from what its decoder gives
  JpegDecoder jpeg_;
  PngDecoder png_;
  WebpDecoder webp_;
  Rect region_;  // of what is stored, where all of it comes at once
  ScratchBytes converted_;
  ScratchBytes turned_;
};

}  // namespace stoker
