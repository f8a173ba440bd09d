#include "pumice/data/download.h"

#include <curl/curl.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>

#include "pumice/core/interrupt.h"
#include "pumice/core/revision.h"
#include "pumice/data/checksum.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// One request. The callbacks run inside libcurl and must not throw.
struct Transfer {
  CURL* handle = nullptr;
  fs::path part;
  std::string title;
  ProgressMode mode = ProgressMode::automatic;
  std::int64_t offset = 0;        // bytes in the .part that the answer continues
  std::int64_t range_start = -1;  // as the answer's Content-Range says
  File file;
  bool wrong_range = false;
  std::optional<Progress> progress;
};

std::size_t on_header(char* line, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view header(line, size * count);
  if (header.starts_with("HTTP/")) transfer.range_start = -1;
  constexpr std::string_view wanted = "content-range: bytes ";
  if (header.size() > wanted.size() &&
      curl_strnequal(header.data(), wanted.data(), wanted.size())) {
    std::from_chars(header.data() + wanted.size(), header.data() + header.size(),
                    transfer.range_start);
  }
  return size * count;
}

std::size_t on_bytes(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (!transfer.file) {
    long code = 0;
    curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &code);
    const bool continues = code == 206;
    if (continues && transfer.range_start != transfer.offset) {
      transfer.wrong_range = true;
      return 0;
    }
    if (!continues) transfer.offset = 0;
    transfer.file.reset(std::fopen(transfer.part.c_str(), continues ? "ab" : "wb"));
    if (!transfer.file) return 0;
  }
  return std::fwrite(bytes, size, count, transfer.file.get()) * size;
}

int on_progress(void* context, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (interrupted()) return 1;
  if (total > 0 && transfer.file) {
    if (!transfer.progress) {
      transfer.progress.emplace(transfer.title, transfer.offset + total, transfer.mode,
                                transfer.offset);
    }
    transfer.progress->update(transfer.offset + done);
  }
  return 0;
}

std::int64_t size_or_zero(const fs::path& path) {
  std::error_code missing;
  const auto size = fs::file_size(path, missing);
  return missing ? 0 : static_cast<std::int64_t>(size);
}

struct Answer {
  CURLcode result = CURLE_OK;
  long code = 0;
  std::string reason;
  bool started = false;  // bytes came
  bool wrong_range = false;
  bool disk_full = false;
};

Answer request(const std::string& url, const fs::path& part, const fs::path& target,
               const DownloadOptions& options) {
  static std::once_flag initialized;
  std::call_once(initialized, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (!curl) fail(url, ": libcurl cannot be started");
  Transfer transfer;
  transfer.handle = curl.get();
  transfer.part = part;
  transfer.title = target.filename().string();
  transfer.mode = options.progress;
  transfer.offset = size_or_zero(part);

  const std::string agent = text("pumice/", version());
  const std::string range = text(transfer.offset, "-");
  char reason[CURL_ERROR_SIZE] = "";
  const auto set = [&](CURLoption option, auto value) {
    curl_easy_setopt(curl.get(), option, value);
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_USERAGENT, agent.c_str());
  set(CURLOPT_ERRORBUFFER, reason);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, 10L);
  set(CURLOPT_FAILONERROR, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, options.connect_timeout_seconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, 60L);
  // Not CURLOPT_RESUME_FROM: that gives up when the server ignores the range.
  if (transfer.offset > 0) set(CURLOPT_RANGE, range.c_str());
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, on_bytes);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);

  Answer answer;
  answer.result = curl_easy_perform(curl.get());
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.code);
  answer.reason = *reason ? reason : curl_easy_strerror(answer.result);
  answer.wrong_range = transfer.wrong_range;
  answer.started = transfer.file != nullptr;
  if (transfer.file) {
    const bool flushed = std::fflush(transfer.file.get()) == 0;
    answer.disk_full = !flushed || std::ferror(transfer.file.get());
  }
  return answer;
}

[[noreturn]] void refuse(const std::string& url, const fs::path& part, const Answer& answer) {
  const bool kept = size_or_zero(part) > 0;
  const std::string resume =
      kept ? text("; ", part.string(), " is kept, the same command continues it") : "";
  if (answer.started && answer.result != CURLE_ABORTED_BY_CALLBACK &&
      answer.result != CURLE_WRITE_ERROR) {
    fail(url, ": broke off, ", answer.reason, resume);
  }
  switch (answer.result) {
    case CURLE_ABORTED_BY_CALLBACK:
      fail(url, ": interrupted", resume);
    case CURLE_WRITE_ERROR:
      fail(part.string(), ": cannot be written");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_HTTP_RETURNED_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_RECV_ERROR:
      throw UnreachableAddress(text(url, ": cannot be downloaded, ", answer.reason, resume));
    default:
      fail(url, ": cannot be downloaded, ", answer.reason, resume);
  }
}

}  // namespace

void download(const std::string& url, const fs::path& target, const DownloadOptions& options) {
  const fs::path part = target.string() + ".part";
  Answer answer = request(url, part, target, options);
  const auto part_is_useless = [&] {
    return answer.wrong_range || (answer.result == CURLE_HTTP_RETURNED_ERROR && answer.code == 416);
  };
  if (part_is_useless()) {
    // 416: nothing lies behind what we have. Either that is the whole file, or it is not this file.
    const bool complete = answer.code == 416 && !options.md5.empty() && size_or_zero(part) > 0 &&
                          md5_of_file(part) == options.md5;
    if (complete) {
      answer = {};
    } else {
      fs::remove(part);
      answer = request(url, part, target, options);
    }
  }
  if (answer.disk_full) fail(part.string(), ": cannot be written, the disk may be full");
  if (answer.result != CURLE_OK) refuse(url, part, answer);
  if (!fs::exists(part)) fail(url, ": empty, must have content");
  if (!options.md5.empty()) {
    const std::string found = md5_of_file(part);
    if (found != options.md5) {
      fs::remove(part);
      fail(url, ": MD5 is ", found, ", must be ", options.md5, "; the download was removed");
    }
  }
  std::error_code reason;
  fs::rename(part, target, reason);
  if (reason) fail(target.string(), ": cannot be written, ", reason.message());
}

}  // namespace pumice
