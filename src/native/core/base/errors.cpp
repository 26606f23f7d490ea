#include "core/base/errors.h"

namespace stoker {
namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

Error located(const Error& error, Where where) {
  std::string message;
  if (where.offset == kUnknown) {
    message = where.path;
  } else {
    message = file_name(where.path) + ", ";
    if (where.record != kUnknown) message += "record " + std::to_string(where.record) + " ";
    message += "at byte " + std::to_string(where.offset);
    if (!where.source.empty()) message += " (" + where.source + ")";
  }
  return {error.code(), message + ": " + error.what(), std::move(where), error.system_errno()};
}

}  // namespace stoker
