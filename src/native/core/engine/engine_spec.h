// How an engine makes batches: which transforms, in which form, with how many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/color/pixel_format.h"
#include "core/jpeg/decoder.h"
#include "core/remote/remote_reader.h"
#include "core/sources/memory_cache.h"
#include "core/sources/record_fields.h"
#include "core/transforms/transform.h"

namespace stoker {

// Pixels of the mode of an engine, row by row without gaps.
struct ConvertedImage {
  std::vector<uint8_t> pixels;
  Extent size;
  Orientation orientation = {};  // that the file asks for, and that is not applied yet
};

// Decodes an image file whose format the core does not. Called by any worker, several at a time. What it
// throws fails the sample.
using ConvertImage = std::function<ConvertedImage(std::span<const uint8_t> file)>;

// Which boxes batches have.
struct BoxRule {
  bool wanted = false;
  double min_visible = 0.0;  // of a box's area
};

inline constexpr size_t kMostTransforms = 64;

struct EngineSpec {
  std::vector<TransformSpec> transforms;  // all of one decode; 1 .. kMostTransforms
  PixelFormat format;
  PixelMode mode = PixelMode::kRgb;
  BoxRule boxes;
  FieldSpec fields;
  DecodeMode decode = DecodeMode::kExact;
  uint64_t seed = 0;
  uint64_t max_pixels = kDefaultMaxPixels;
  bool turns = false;                    // whether images are turned by their EXIF orientation
  size_t batch_size = 1;                 // the most samples a batch may have
  size_t threads = 1;                    // 1 .. kMostThreads
  size_t spare_buffers = 4;              // image buffers kept for reuse, of each transform
  std::shared_ptr<MemoryCache> decoded;  // keeps whole images as pixels of the mode; may be none
  std::shared_ptr<RemoteReader> ahead;   // fetches remote samples by a schedule; may be none
  ConvertImage convert;  // for files of other formats than the core decodes; without it those are errors
};

}  // namespace stoker
