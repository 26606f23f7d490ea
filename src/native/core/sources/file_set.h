// Samples that are image files of their own, or lie in uncompressed archives.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shards/open_files.h"
#include "core/sources/sample_source.h"

namespace stoker {

// A file is read whole, so that a listing cannot make a reader allocate more than this.
inline constexpr uint64_t kMostFileBytes = uint64_t{1} << 30;

// Columns of one row per sample; paths are bytes, as the file system has them.
struct FileList {
  std::string base;  // before every name that does not begin with '/'
  std::string names;
  std::vector<int64_t> starts;  // name i is names[starts[i], starts[i + 1])
  std::vector<int64_t> labels;
  std::vector<int64_t> sizes;  // bytes
  std::vector<std::string> archives;
  std::vector<int32_t> archive_of;  // -1: a file of its own
  std::vector<int64_t> offsets;     // of the image's first byte in its archive
};

// Gives the fields of a sample that are wanted, as a tf.train.Example. `image` is its file. Called from any
// thread.
using MakeFields = std::function<std::vector<uint8_t>(uint64_t number, std::span<const uint8_t> image,
                                                      const FieldSpec& spec)>;

class FileSet : public SampleSource {
 public:
  // Throws kBadArgument when the columns contradict each other. Touches no file.
  explicit FileSet(FileList list);
  ~FileSet() override { delete boxes_.load(); }

  // Sets the annotated objects: those of sample i are boxes[starts[i]] .. boxes[starts[i + 1] - 1], and so
  // are their labels; without labels they have that of their image. `damaged` says what is wrong with the
  // objects of samples whose boxes must not be used. Of several calls the first counts, so that readers need
  // no lock.
  void set_boxes(std::vector<int64_t> starts, std::vector<ObjectBox> boxes, std::vector<int64_t> labels = {},
                 std::map<size_t, std::string> damaged = {});

  // Sets what gives the fields of samples; to be called before any is read.
  void set_fields(MakeFields make) { make_fields_ = std::move(make); }

  // From now on the archives, and the files outside of archives, are those of remote storage: archive i is
  // number i of `files`, and image i, if it is a file of its own, is number i after the archives.
  void set_remote(RemoteFiles files) {
    check_numbers(files);
    remote_ = std::move(files);
  }

  uint64_t size() const override { return list_.labels.size(); }

  // Throws kIo when a file cannot be read, is not a regular file, is shorter than listed or longer than
  // kMostFileBytes. One that grew is read as it now is.
  std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const override;

  // Throws kBadArgument for an object that is not there, and kBadExample, as append_boxes(), for damaged
  // ones.
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                        std::string& source) const override;

  void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label, SourceScratch& scratch,
                    std::vector<LabelledBox>& boxes) const override;

  // Throws what `make` of set_fields() throws, too.
  void read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                   RecordFields& fields) const override;

  uint64_t start_reading(uint64_t number) const override;

  // The bytes of the image, if files are remote.
  RemoteSpan remote_span(uint64_t number) const override;

  // Path of the file, or of the archive with the image's offset; the sample's name.
  Where where(uint64_t number) const override;

 private:
  struct Boxes {
    std::vector<int64_t> starts;
    std::vector<ObjectBox> boxes;
    std::vector<int64_t> labels;            // of each, or none
    std::map<size_t, std::string> damaged;  // what is wrong, by sample
  };

  size_t checked(uint64_t number) const;
  std::span<const uint8_t> fetch_remote(size_t index, SourceScratch& scratch) const;
  std::string_view name(size_t index) const;
  std::string path(size_t index) const;
  const Boxes* boxes_of(size_t index) const;
  ObjectBox box(SampleId id) const;

  FileList list_;
  OpenFiles archives_;
  MakeFields make_fields_;
  RemoteFiles remote_;                        // without a reader: they are files of this machine
  std::atomic<const Boxes*> boxes_{nullptr};  // owned
};

}  // namespace stoker
