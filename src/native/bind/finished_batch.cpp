// Binds the batches of core/engine/engine.h.
#include "bind/finished_batch.h"

#include <memory>
#include <utility>
#include <vector>

#include "bind/bind.h"

namespace stoker::bind {
namespace {

nb::dlpack::dtype numpy_type(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1};
    case PixelType::kFloat16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case PixelType::kFloat32:
      break;
  }
  return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 32, 1};
}

nb::object images_of(const FinishedBatch& finished, size_t view) {
  auto held = std::make_unique<std::shared_ptr<uint8_t[]>>(finished.batch.images[view]);
  uint8_t* pixels = held->get();
  nb::capsule owner(held.get(), [](void* p) noexcept { delete static_cast<std::shared_ptr<uint8_t[]>*>(p); });
  held.release();
  const Extent out = finished.views[view].out;
  const auto height = static_cast<size_t>(out.height), width = static_cast<size_t>(out.width);
  const size_t count = finished.batch.keys.size();
  const bool planes = finished.format.layout == PixelLayout::kNchw;
  const size_t nhwc[] = {count, height, width, kRgbBytes}, nchw[] = {count, kRgbBytes, height, width};
  return nb::cast(nb::ndarray<nb::numpy>(pixels, 4, planes ? nchw : nhwc, owner, nullptr,
                                         numpy_type(finished.format.type)));
}

// corners (T, 4), labels (T,), objects (T,) and offsets (B + 1,): the boxes of sample i are rows offsets[i]
// to offsets[i + 1].
nb::tuple boxes_of(const std::vector<std::vector<ViewBox>>& samples) {
  std::vector<float> corners;
  std::vector<int64_t> labels, offsets{0};
  std::vector<int32_t> objects;
  for (const auto& boxes : samples) {
    for (const ViewBox& box : boxes) {
      corners.insert(corners.end(), {box.xmin, box.ymin, box.xmax, box.ymax});
      labels.push_back(box.label);
      objects.push_back(box.object);
    }
    offsets.push_back(static_cast<int64_t>(labels.size()));
  }
  return nb::make_tuple(give(std::move(corners)), give(std::move(labels)), give(std::move(objects)),
                        give(std::move(offsets)));
}

nb::tuple take(FinishedBatch& finished) {
  Batch& batch = finished.batch;
  nb::list images, boxes;
  for (size_t view = 0; view < batch.images.size(); ++view) images.append(images_of(finished, view));
  for (const auto& samples : batch.boxes) boxes.append(boxes_of(samples));
  return nb::make_tuple(images, give(std::move(batch.labels)), give(std::move(batch.keys)),
                        give(std::move(batch.seeds)), boxes);
}

nb::list failures_of(const FinishedBatch& finished) {
  nb::list failures;
  for (const SampleFailure& failure : finished.batch.failures) {
    failures.append(nb::make_tuple(failure.index, exception_of(failure.error)));
  }
  return failures;
}

}  // namespace

void register_finished_batch(nb::module_& m) {
  nb::class_<FinishedBatch>(m, "FinishedBatch", "A batch that all threads are done with.")
      .def_prop_ro("failures", &failures_of, nb::sig("def failures(self) -> list[tuple[int, Exception]]"),
                   "Which samples could not be loaded, in batch order, and why.")
      .def("take", &take,
           "Hand over, once: the images of each view, (B, H, W, 3) or (B, 3, H, W), labels (B,), keys (B,), "
           "seeds (B,), and "
           "of each "
           "view the boxes: corners (4 T,), labels (T,), objects (T,), offsets (B + 1,).");
}

}  // namespace stoker::bind
