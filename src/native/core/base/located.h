// Errors that say where.
#pragma once

#include "core/base/errors.h"

namespace stoker {

// "shard.tfrecord, record 17 at byte 123456 (n01440764_10026.JPEG): ..." and the same in the error's fields.
// What is a file by itself is named by its path alone.
Error located(const Error& error, Where where);

}  // namespace stoker
