// How Python says what a JPEG shall be.
#pragma once

#include <string>

#include "core/base/errors.h"
#include "core/jpeg/jpeg.h"

namespace stoker::bind {

inline JpegEncodeSpec encode_spec(int quality, const std::string& subsampling) {
  JpegEncodeSpec spec;
  spec.quality = quality;
  if (subsampling == "4:2:0") return spec;
  spec.vertical_sampling = 1;
  if (subsampling == "4:2:2") return spec;
  spec.horizontal_sampling = 1;
  if (subsampling == "4:4:4") return spec;
  throw Error(ErrorCode::kBadArgument, "Unknown subsampling " + subsampling + "; use 4:4:4, 4:2:2 or 4:2:0");
}

}  // namespace stoker::bind
