// Binds core/remote.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/errors.h"
#include "core/remote/remote_ranges.h"
#include "core/remote/remote_reader.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;
using Integers = Column<int64_t>;
using Reading = nb::typed<nb::callable, nb::object(int64_t, uint64_t, uint64_t)>;

std::string message_of(nb::handle error) {
  const nb::object words = nb::getattr(error, "strerror", nb::none());
  return nb::str(words.is_none() ? error : nb::handle(words)).c_str();
}

// The error of the core for what reading has raised, which is not MemoryError. Needs the GIL.
Error reading_error(nb::handle raised) {
  const nb::object errors = nb::module_::import_("stoker.errors");
  const nb::object builtins = nb::module_::import_("builtins");
  const auto is = [&](const nb::object& kind) { return PyObject_IsInstance(raised.ptr(), kind.ptr()) == 1; };
  if (is(errors.attr("StorageError"))) return {ErrorCode::kStorage, nb::str(raised).c_str()};
  if (is(errors.attr("ConfigError"))) return {ErrorCode::kBadArgument, nb::str(raised).c_str()};
  if (is(builtins.attr("OSError"))) {
    const nb::object number = raised.attr("errno");
    if (!nb::isinstance<nb::int_>(number)) return {ErrorCode::kStorage, nb::str(raised).c_str()};
    return {ErrorCode::kIo, message_of(raised), {}, nb::cast<int>(number)};
  }
  const std::string name = nb::str(raised.type().attr("__name__")).c_str();
  return {ErrorCode::kCallback, "reading remote bytes raised " + name + ": " + nb::str(raised).c_str()};
}

// The same of any exception; nothing where memory has run out, perhaps just now.
std::optional<Error> failure_of(nb::handle raised) {
  if (PyErr_GivenExceptionMatches(raised.ptr(), PyExc_MemoryError) != 0) return std::nullopt;
  try {
    return reading_error(raised);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  } catch (nb::python_error& again) {
    if (!again.matches(PyExc_MemoryError)) throw;
    return std::nullopt;
  }
}

std::vector<uint8_t> call_reading(const nb::callable& read, const RemoteSpan& span) {
  const WithGil gil;
  try {
    const auto bytes = nb::cast<ByteView>(read(span.file, span.offset, span.length));
    return {bytes.data(), bytes.data() + bytes.size()};
  } catch (const nb::python_error& raised) {
    if (std::optional<Error> error = failure_of(raised.value())) throw *std::move(error);
    throw std::bad_alloc();
  } catch (const nb::cast_error&) {
    throw Error(ErrorCode::kCallback, "reading remote bytes returned something else than bytes");
  }
}

DirectReader::Read reading(nb::callable read) {
  return [held = hold(std::move(read))](const RemoteSpan& span) { return call_reading(*held, span); };
}

// Columns of ranges, and of the pieces of all of them end to end.
std::vector<ExpectedRange> expected_ranges(const Integers& files, const Integers& offsets,
                                           const Integers& lengths, const Integers& last_uses,
                                           const Integers& starts,
                                           const std::tuple<Integers, Integers, Integers>& pieces) {
  const auto& [piece_offsets, piece_lengths, piece_uses] = pieces;
  const size_t count = files.size(), all = piece_offsets.size();
  if (offsets.size() != count || lengths.size() != count || last_uses.size() != count ||
      starts.size() != count + 1 || piece_lengths.size() != all || piece_uses.size() != all) {
    throw Error(ErrorCode::kBadArgument, "The columns of ranges differ in length");
  }
  // What is negative becomes larger than anything that is accepted.
  const auto at = [](const Integers& column, size_t i) { return static_cast<uint64_t>(column.data()[i]); };
  std::vector<ExpectedRange> ranges(count);
  for (size_t i = 0; i < count; ++i) {
    ranges[i].span = {files.data()[i], at(offsets, i), at(lengths, i)};
    ranges[i].last_use = at(last_uses, i);
    if (at(starts, i) > at(starts, i + 1) || at(starts, i + 1) > all) {
      throw Error(ErrorCode::kBadArgument, "The pieces of ranges do not lie end to end");
    }
    for (size_t k = at(starts, i); k < at(starts, i + 1); ++k) {
      ranges[i].pieces.push_back({at(piece_offsets, k), at(piece_lengths, k), at(piece_uses, k)});
    }
  }
  return ranges;
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  if (!(seconds > 0.0)) return {};  // also what is not a number
  return std::chrono::milliseconds(static_cast<int64_t>(std::min(seconds, 1e6) * 1000));
}

void deliver(RemoteRanges& ranges, uint64_t id, const ByteView& bytes) {
  const WithoutGil nogil;
  // A copy, so that no thread that decodes has to wait for the GIL to release Python's.
  const auto own = std::shared_ptr<uint8_t[]>(std::make_unique_for_overwrite<uint8_t[]>(bytes.size()));
  std::copy_n(bytes.data(), bytes.size(), own.get());
  ranges.deliver(id, {own.get(), bytes.size()}, own);
}

void add_counts(nb::module_& m) {
  nb::class_<RangeCounts>(m, "RangeCounts", "What has been read ahead so far.")
      .def_ro("held_bytes", &RangeCounts::held_bytes)
      .def_ro("peak_bytes", &RangeCounts::peak_bytes)
      .def_ro("requests", &RangeCounts::requests)
      .def_ro("bytes", &RangeCounts::bytes)
      .def_ro("unplanned", &RangeCounts::unplanned)
      .def_ro("rereads", &RangeCounts::rereads);
}

}  // namespace

void register_remote(nb::module_& m) {
  add_counts(m);
  m.def("number_remote_files", &number_remote_files, "count"_a,
        "The first of `count` numbers for files, unique in this process.");
  nb::class_<RemoteReader>(m, "RemoteReader", "Reads bytes of remote files.");
  nb::class_<DirectReader, RemoteReader>(m, "DirectReader", "Reads whatever it is asked for at once.")
      .def(
          "__init__",
          [](DirectReader* reader, Reading read) { new (reader) DirectReader(reading(std::move(read))); },
          "read"_a, "`read(file, offset, length)` gives exactly those bytes; any thread may call it.");
  nb::class_<RemoteRanges, RemoteReader>(m, "RemoteRanges",
                                         "Byte ranges that are fetched ahead, under a budget.")
      .def(nb::init<uint64_t>(), "budget"_a)
      .def(
          "expect",
          [](RemoteRanges& ranges, const Integers& files, const Integers& offsets, const Integers& lengths,
             const Integers& last_uses, const Integers& starts,
             const std::tuple<Integers, Integers, Integers>& pieces, uint64_t planned_uses) {
            auto expected = expected_ranges(files, offsets, lengths, last_uses, starts, pieces);
            const WithoutGil nogil;
            ranges.expect(std::move(expected), planned_uses);
          },
          "files"_a, "offsets"_a, "lengths"_a, "last_uses"_a, "starts"_a, "pieces"_a, "planned_uses"_a,
          "Queue ranges; the pieces of range i are rows starts[i]:starts[i + 1] of `pieces`, which are their "
          "offsets, their lengths and how often each is used.")
      .def(
          "wait_for_demand",
          [](RemoteRanges& ranges, uint64_t bytes, uint64_t uses, double timeout_s) {
            const WithoutGil nogil;
            return ranges.wait_for_demand(bytes, uses, milliseconds_of(timeout_s));
          },
          "bytes"_a, "uses"_a, "timeout_s"_a,
          "Wait until less than that is planned and not fetched or used yet; false when it was not to be.")
      .def(
          "next",
          [](RemoteRanges& ranges, double timeout_s) -> nb::object {
            std::optional<FetchJob> job;
            {
              const WithoutGil nogil;
              job = ranges.next(milliseconds_of(timeout_s));
            }
            if (!job) return nb::none();
            try {
              return nb::make_tuple(job->id, job->span.file, job->span.offset, job->span.length);
            } catch (...) {  // no memory: nobody knows of the range that was given out
              ranges.fail(job->id, std::nullopt);
              throw;
            }
          },
          "timeout_s"_a, nb::sig("def next(self, timeout_s: float) -> tuple[int, int, int, int] | None"),
          "Wait for the next range to fetch: (id, file, offset, length).")
      .def("deliver", &deliver, "id"_a, "bytes"_a, "The bytes of a range.")
      .def(
          "fail",
          [](RemoteRanges& ranges, uint64_t id, nb::handle error) { ranges.fail(id, failure_of(error)); },
          "id"_a, "error"_a, nb::sig("def fail(self, id: int, error: BaseException) -> None"),
          "A range cannot be had.")
      .def("release_until", &RemoteRanges::release_until, "use"_a, nb::call_guard<WithoutGil>(),
           "Uses below this number are over.")
      .def("forget", &RemoteRanges::forget, nb::call_guard<WithoutGil>(),
           "Drop all that is expected; uses count from 0 again.")
      .def("close", &RemoteRanges::close, nb::call_guard<WithoutGil>(), "The same for good.")
      .def_prop_ro("closed", &RemoteRanges::closed)
      .def("counts", &RemoteRanges::counts);
}

}  // namespace stoker::bind
