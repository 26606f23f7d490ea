// How an engine makes batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/pixels.h"
#include "core/color/pixel_format.h"
#include "core/jpeg/decoder.h"
#include "core/remote/remote_reader.h"
#include "core/sources/memory_cache.h"
#include "core/transforms/transform.h"

namespace stoker {

// Makes a JPEG of an image in another format. Called by any worker, several at a time. What it throws fails
// the sample.
using ConvertImage = std::function<std::vector<uint8_t>(std::span<const uint8_t> image)>;

// Which boxes batches have.
struct BoxRule {
  bool wanted = false;
  double min_visible = 0.0;  // of a box's area
};

struct EngineSpec {
  std::vector<TransformSpec> transforms;  // all of one decode; at least one
  PixelFormat format;
  BoxRule boxes;
  DecodeMode decode = DecodeMode::kExact;
  uint64_t seed = 0;
  uint64_t max_pixels = kDefaultMaxPixels;
  size_t batch_size = 1;  // the most samples a batch may have
  size_t threads = 1;
  size_t spare_buffers = 4;              // image buffers kept for reuse, of each transform
  std::shared_ptr<MemoryCache> decoded;  // keeps whole images as pixels; may be none
  std::shared_ptr<RemoteReader> ahead;   // fetches remote samples by a schedule; may be none
  ConvertImage convert;  // for images that do not begin as a JPEG does; without it those are errors
};

}  // namespace stoker
