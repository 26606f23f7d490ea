// The only place where an error of the core becomes a Python exception.
#include "core/base/errors.h"

#include <cerrno>
#include <exception>
#include <new>
#include <string>

#include "bind/bind.h"

namespace stoker::bind {
namespace {

// No default: a new ErrorCode must get a line here, or the build fails.
const char* class_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadArgument:
      return "ConfigError";
    case ErrorCode::kTruncatedShard:
      return "TruncatedShardError";
    case ErrorCode::kCorruptRecord:
      return "CorruptRecordError";
    case ErrorCode::kIndexMismatch:
      return "IndexMismatchError";
    case ErrorCode::kBadExample:
      return "ExampleError";
    case ErrorCode::kBadImage:
      return "ImageError";
    case ErrorCode::kImageTooLarge:
      return "ImageTooLargeError";
    case ErrorCode::kIo:
      return "OSError";
    case ErrorCode::kStorage:
      return "StorageError";
    case ErrorCode::kClosed:
      return "ClosedError";
    case ErrorCode::kCallback:
      return "StokerError";
  }
  return "StokerError";
}

nb::object text_or_none(const std::string& value) {
  return value.empty() ? nb::object(nb::none()) : text(value);
}

nb::object number_or_none(int64_t value) {
  return value == kUnknown ? nb::object(nb::none()) : nb::object(nb::int_(value));
}

nb::object python_exception(const Error& e) {
  if (e.code() == ErrorCode::kIo) {
    // OSError(errno, ...) makes Python pick the subclass: FileNotFoundError, PermissionError, ...
    nb::object cls = nb::module_::import_("builtins").attr("OSError");
    return cls(e.system_errno(), text(e.what()), text_or_none(e.where().path));
  }
  nb::object cls = nb::module_::import_("stoker.errors").attr(class_name(e.code()));
  nb::dict where;
  where["path"] = text_or_none(e.where().path);
  where["record"] = number_or_none(e.where().record);
  where["offset"] = number_or_none(e.where().offset);
  where["source"] = text_or_none(e.where().source);
  return cls(text(e.what()), **where);
}

}  // namespace

nb::object exception_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return python_exception(e);
  } catch (const std::bad_alloc&) {
    return nb::module_::import_("builtins").attr("MemoryError")();
  } catch (const std::exception& e) {
    return nb::module_::import_("builtins").attr("RuntimeError")(text(e.what()));
  }
}

void register_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& caught, void*) {
    if (!caught) stay_for_good();
    try {
      std::rethrow_exception(caught);
    } catch (const Error& e) {  // anything else falls through to nanobind's own table
      const nb::object value = python_exception(e);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
    }
  });
}

}  // namespace stoker::bind
