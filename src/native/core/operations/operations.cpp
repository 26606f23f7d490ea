// The list of operations.
#include <string_view>

#include "core/operations/operation.h"

namespace stoker {

template <typename Operation>
using Parse = std::shared_ptr<const Operation>(OperationSettings&);

// Each is defined in the file of its name.
Parse<GeometryOperation> center_crop, object_crops, random_resized_crop, raw_tensor, resize, top_left;
Parse<PixelOperation> color_jitter;

namespace {

template <typename Operation>
struct Entry {
  std::string_view name;  // of its class in Python
  Parse<Operation>* parse;
};

constexpr Entry<GeometryOperation> kGeometryOperations[] = {
    {"CenterCrop", center_crop},
    {"ObjectCrops", object_crops},
    {"RandomResizedCrop", random_resized_crop},
    {"RawTensor", raw_tensor},
    {"Resize", resize},
    {"TopLeft", top_left},
};

constexpr Entry<PixelOperation> kPixelOperations[] = {
    {"ColorJitter", color_jitter},
};

template <typename Operation, size_t kCount>
std::shared_ptr<const Operation> parse(const Entry<Operation> (&entries)[kCount],
                                       OperationSettings& settings) {
  for (const Entry<Operation>& entry : entries) {
    if (entry.name == settings.operation()) return entry.parse(settings);
  }
  settings.refuse("there is no such operation");
}

}  // namespace

std::shared_ptr<const GeometryOperation> parse_geometry(OperationSettings& settings) {
  return parse(kGeometryOperations, settings);
}

std::shared_ptr<const PixelOperation> parse_pixel_operation(OperationSettings& settings) {
  return parse(kPixelOperations, settings);
}

std::string describe(Extent size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace stoker
