// What an engine makes: the pixels, labels, boxes and fields of some samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "core/engine/batch_column.h"
#include "core/transforms/transform.h"

namespace stoker {

// A sample that could not be loaded. Its pixels, its label, its boxes and its fields are not set.
struct SampleFailure {
  size_t row = 0;  // in the batch
  std::exception_ptr error;
};

// One finished batch. The image buffers go back to the engine's pools when the last reference dies.
struct Batch {
  std::vector<std::shared_ptr<uint8_t[]>>
      images;  // of each transform: size images of its `out`, as the engine's format says
  std::vector<int64_t> labels;
  std::vector<uint64_t> indices;
  std::vector<uint64_t> seeds;  // for the random choices of the consumer
  std::vector<std::vector<std::vector<TransformedBox>>>
      boxes;                         // of each transform, of each sample; empty if not wanted
  std::vector<BatchColumn> columns;  // of the fields
  std::vector<std::vector<std::shared_ptr<uint8_t[]>>>
      planes;  // of each plane of the fields, of each transform: images as `images`, or masks of one channel
  std::vector<SampleFailure> failures;  // in batch order
  uint64_t epoch = 0;
  std::vector<uint64_t> streams;
  uint32_t number = 0;  // in the order of submission
  uint64_t engine = 0;  // which made it
};

}  // namespace stoker
