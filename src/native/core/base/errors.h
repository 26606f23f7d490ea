// The one error type of the core, and what says where one happened.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace stoker {

// One code per Python class in stoker/errors.py; bind/errors.cpp maps each of them.
enum class ErrorCode {
  kBadArgument,
  kTruncatedShard,
  kCorruptRecord,
  kIndexMismatch,
  kBadExample,
  kBadImage,
  kImageTooLarge,
  kIo,       // `system_errno` says which
  kStorage,  // remote storage has failed, also when it was asked again
  kClosed,
  kCallback,  // what the caller gave to be called has failed
};

inline constexpr int64_t kUnknown = -1;

// Where an error happened. Fields that do not apply keep their defaults.
struct Where {
  std::string path;           // shard or file
  int64_t record = kUnknown;  // zero-based, inside the file
  int64_t offset = kUnknown;  // bytes from the start of the file
  std::string source;         // name of the source image, as stored in the record
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what, Where where = {}, int system_errno = 0)
      : std::runtime_error(what), code_(code), where_(std::move(where)), system_errno_(system_errno) {}

  ErrorCode code() const { return code_; }
  const Where& where() const { return where_; }
  int system_errno() const { return system_errno_; }

 private:
  ErrorCode code_;
  Where where_;
  int system_errno_;
};

// "shard.tfrecord, record 17 at byte 123456 (n01440764_10026.JPEG): ..." and the same in the error's fields.
// A file that is a sample by itself is named by its path alone.
Error located(const Error& error, Where where);

}  // namespace stoker
