// Files for tests that are gone when the test is over.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/sources/record_set.h"

namespace stoker::tests {

inline std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& contents) {
    path_ = (std::filesystem::temp_directory_path() / "stoker-test-XXXXXX").string();
    const int descriptor = mkstemp(path_.data());
    REQUIRE(descriptor >= 0);
    ::close(descriptor);
    std::ofstream file(path_, std::ios::binary);
    file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A shard with these payloads.
class Shard {
 public:
  explicit Shard(const std::vector<std::string>& payloads) : file_(framed(payloads)) {
    uint64_t offset = 0;
    for (const std::string& payload : payloads) {
      extents_.push_back({offset, payload.size() + kFrameBytes});
      offset += extents_.back().size;
    }
  }

  std::shared_ptr<RecordSet> records(const std::string& name = {}) const {
    auto set = std::make_shared<RecordSet>();
    set->add(file_.path(), extents_, name);
    return set;
  }
  const std::string& path() const { return file_.path(); }
  const std::vector<RecordExtent>& extents() const { return extents_; }

 private:
  static std::string framed(const std::vector<std::string>& payloads) {
    std::string all;
    for (const std::string& payload : payloads) {
      std::vector<uint8_t> frame(payload.size() + kFrameBytes);
      write_frame(bytes_of(payload), frame);
      all.append(frame.begin(), frame.end());
    }
    return all;
  }

  TemporaryFile file_;
  std::vector<RecordExtent> extents_;
};

}  // namespace stoker::tests
