#include "core/resize/filter_names.h"

#include "core/base/errors.h"

namespace stoker {

Filter filter_named(const std::string& name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "box") return Filter::kBox;
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "lanczos") return Filter::kLanczos;
  throw Error(ErrorCode::kBadArgument,
              "Unknown filter " + name + "; use nearest, box, bilinear, bicubic or lanczos");
}

}  // namespace stoker
