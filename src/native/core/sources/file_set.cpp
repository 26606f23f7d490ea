#include "core/sources/file_set.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/errors.h"
#include "core/base/random_access_file.h"

namespace stoker {
namespace {

constexpr size_t kOpenArchives = 256;

// A path that begins at the root, or a URL.
bool is_absolute(std::string_view path) {
  return path.starts_with('/') || path.substr(0, 32).find("://") != std::string_view::npos;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kBadArgument, what);
}

// Whether `starts` cuts 0 .. `total` into `rows` pieces that lie one behind the other.
bool cuts(const std::vector<int64_t>& starts, size_t rows, size_t total) {
  return starts.size() == rows + 1 && starts.front() >= 0 && std::is_sorted(starts.begin(), starts.end()) &&
         static_cast<uint64_t>(starts.back()) <= total;
}

void check(const FileList& list) {
  const size_t rows = list.labels.size();
  if (list.sizes.size() != rows || list.archive_of.size() != rows || list.offsets.size() != rows) {
    refuse("The columns of the file list differ in length");
  }
  if (!cuts(list.starts, rows, list.names.size())) {
    refuse("The starts of the names must grow from 0 to the " + std::to_string(list.names.size()) +
           " bytes there are, one more than there are files");
  }
  if (list.names.find('\0') != std::string::npos) refuse("A file name with a NUL byte");
  for (size_t i = 0; i < rows; ++i) {
    const bool archived = list.archive_of[i] >= 0;
    if (archived && static_cast<size_t>(list.archive_of[i]) >= list.archives.size()) {
      refuse("File " + std::to_string(i) + " is said to lie in archive " +
             std::to_string(list.archive_of[i]) + "; there are " + std::to_string(list.archives.size()));
    }
    if (list.sizes[i] < 0 || (archived && list.offsets[i] < 0)) {
      refuse("File " + std::to_string(i) + " has a negative size or offset");
    }
  }
}

[[noreturn]] void fail_read(const Where& where, const std::string& what, int number) {
  const std::string member = where.offset == kUnknown ? "" : where.source + ": ";
  throw Error(ErrorCode::kIo, member + what, where, number);
}

[[noreturn]] void refuse_length(const Where& where, uint64_t bytes) {
  fail_read(
      where,
      "it has " + std::to_string(bytes) + " bytes; an image file may have " + std::to_string(kMostFileBytes),
      EFBIG);
}

[[noreturn]] void refuse_hole(const Where& where, uint64_t bytes) {
  fail_read(where,
            "most of its " + std::to_string(bytes) +
                " bytes were never written (a hole of a sparse file); copy or download it again",
            EINVAL);
}

}  // namespace

FileSet::FileSet(FileList list) : list_(std::move(list)), archives_(kOpenArchives) {
  check(list_);
  if (!list_.base.empty() && list_.base.back() != '/') list_.base += '/';
  for (const std::string& archive : list_.archives) {
    archives_.add(is_absolute(archive) ? archive : list_.base + archive, {});
  }
}

void FileSet::set_boxes(std::vector<int64_t> starts, std::vector<ObjectBox> boxes,
                        std::vector<int64_t> labels, std::map<size_t, std::string> damaged) {
  if (!cuts(starts, size(), boxes.size())) {
    refuse("The starts of the boxes must grow from 0 to the " + std::to_string(boxes.size()) +
           " boxes there are, one more than there are files");
  }
  if (!labels.empty() && labels.size() != boxes.size()) {
    refuse("There are " + std::to_string(labels.size()) + " labels of " + std::to_string(boxes.size()) +
           " boxes");
  }
  auto owned = std::make_unique<const Boxes>(
      Boxes{std::move(starts), std::move(boxes), std::move(labels), std::move(damaged)});
  const Boxes* none = nullptr;
  if (boxes_.compare_exchange_strong(none, owned.get())) static_cast<void>(owned.release());
}

size_t FileSet::checked(uint64_t number) const {
  if (number < size()) return static_cast<size_t>(number);
  refuse("There is no sample " + std::to_string(number) + "; the dataset has " + std::to_string(size()));
}

std::string_view FileSet::name(size_t index) const {
  const auto start = static_cast<size_t>(list_.starts[index]);
  return std::string_view(list_.names).substr(start, static_cast<size_t>(list_.starts[index + 1]) - start);
}

std::string FileSet::path(size_t index) const {
  const std::string_view own = name(index);
  return is_absolute(own) ? std::string(own) : list_.base + std::string(own);
}

Where FileSet::where(uint64_t number) const {
  const size_t index = checked(number);
  Where where{.path = {}, .record = kUnknown, .offset = kUnknown, .source = std::string(name(index))};
  if (list_.archive_of[index] < 0) {
    where.path = path(index);
  } else {
    where.path = archives_.name(static_cast<size_t>(list_.archive_of[index]));
    where.offset = list_.offsets[index];
  }
  return where;
}

RemoteSpan FileSet::remote_span(uint64_t number) const {
  const size_t index = checked(number);
  if (!remote_.reader || list_.sizes[index] == 0) return {};
  const auto length = static_cast<uint64_t>(list_.sizes[index]);
  const int64_t archive = list_.archive_of[index];
  if (archive >= 0) return {remote_.first + archive, static_cast<uint64_t>(list_.offsets[index]), length};
  const auto behind = static_cast<int64_t>(list_.archives.size() + index);
  return {remote_.first + behind, 0, length};
}

std::span<const uint8_t> FileSet::fetch_remote(size_t index, SourceScratch& scratch) const {
  const RemoteSpan span = remote_span(index);
  if (span.length > kMostFileBytes) refuse_length(where(index), span.length);
  try {
    const auto bytes = scratch.remote.take(remote_, span);
    scratch.clock.mark(Stage::kRemote);
    scratch.clock.count_bytes(bytes.size());
    return bytes;
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), where(index), error.system_errno());
  }
}

std::span<const uint8_t> FileSet::fetch(uint64_t number, SourceScratch& scratch) const {
  const size_t index = checked(number);
  if (remote_.reader) return fetch_remote(index, scratch);
  const auto listed = static_cast<uint64_t>(list_.sizes[index]);
  std::shared_ptr<const RandomAccessFile> file;
  uint64_t begin = 0, bytes = listed;
  if (list_.archive_of[index] < 0) {
    file = std::make_shared<const RandomAccessFile>(path(index));
    bytes = file->size();
  } else {
    file = archives_.open(static_cast<size_t>(list_.archive_of[index]));
    begin = static_cast<uint64_t>(list_.offsets[index]);
    bytes = std::min(listed, file->size() - std::min(begin, file->size()));
  }
  if (bytes > kMostFileBytes) refuse_length(where(number), bytes);
  if (file->has_hole(begin, bytes)) refuse_hole(where(number), bytes);
  const std::span<uint8_t> data(scratch.bytes.take(bytes), bytes);
  const size_t got = file->read_at(begin, data);
  scratch.clock.mark(Stage::kRead);
  scratch.clock.count_bytes(got);
  if (got < bytes || got < listed) {
    fail_read(where(number),
              "it has " + std::to_string(got) + " bytes, and had " + std::to_string(std::max(bytes, listed)) +
                  " before, so it was cut short; restore it, or list the images again",
              EIO);
  }
  return data.first(got);
}

uint64_t FileSet::start_reading(uint64_t number) const {
  const size_t index = checked(number);
  if (remote_.reader) return 0;
  if (list_.archive_of[index] < 0) {
    const RandomAccessFile file(path(index));
    return file.start_reading(0, file.size());
  }
  return archives_.open(static_cast<size_t>(list_.archive_of[index]))
      ->start_reading(static_cast<uint64_t>(list_.offsets[index]), static_cast<uint64_t>(list_.sizes[index]));
}

// Nothing where no boxes are set.
const FileSet::Boxes* FileSet::boxes_of(size_t index) const {
  const Boxes* known = boxes_.load();
  if (known && known->damaged.contains(index)) throw Error(ErrorCode::kBadExample, known->damaged.at(index));
  return known;
}

void FileSet::append_boxes(uint64_t number, std::span<const uint8_t>, int64_t label, SourceScratch&,
                           std::vector<LabelledBox>& boxes) const {
  const size_t index = checked(number);
  const Boxes* known = boxes_of(index);
  if (!known) return;
  for (auto i = known->starts[index]; i < known->starts[index + 1]; ++i) {
    const auto row = static_cast<size_t>(i);
    boxes.push_back({known->boxes[row], known->labels.empty() ? label : known->labels[row]});
  }
}

void FileSet::read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                          RecordFields& fields) const {
  const size_t index = checked(number);
  if (!make_fields_) return SampleSource::read_fields(number, bytes, spec, fields);
  fields.record = make_fields_(index, bytes, spec);
  stoker::read_fields(fields.record, spec, fields);
}

ObjectBox FileSet::box(SampleId id) const {
  const auto index = static_cast<size_t>(id.number);
  const Boxes* known = boxes_of(index);
  const int64_t first = known ? known->starts[index] : 0, end = known ? known->starts[index + 1] : 0;
  if (id.object < 0 || id.object >= end - first) {
    refuse("there is no object " + std::to_string(id.object) + "; the image has " +
           std::to_string(end - first));
  }
  return known->boxes[static_cast<size_t>(first + id.object)];
}

SourceSample FileSet::describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch&,
                               std::string& source) const {
  const size_t index = checked(id.number);
  source = name(index);
  SourceSample sample;
  sample.image.bytes = bytes;
  sample.label = list_.labels[index];
  if (id.object != kWholeImage) sample.image.object = box(id);
  return sample;
}

}  // namespace stoker
