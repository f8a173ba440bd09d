// One file over HTTP or HTTPS, resumed where it broke off, with a checksum.
#pragma once

#include <filesystem>
#include <string>

#include "pumice/core/error.h"
#include "pumice/core/progress.h"

namespace pumice {

// The address gave nothing: no connection, no such host, or an HTTP error. Another place may.
class UnreachableAddress : public Error {
 public:
  using Error::Error;
};

struct DownloadOptions {
  std::string md5 = {};  // hex; "": not checked
  long connect_timeout_seconds = 15;
  ProgressMode progress = ProgressMode::automatic;
};

// Writes to `target`.part and renames when the checksum is right. A .part that is there is
// continued by a range request; a server that ignores ranges sends everything again. On Ctrl-C or a
// broken connection the .part stays and Error says so; on a wrong checksum it is removed and Error
// gives both sums.
void download(const std::string& url, const std::filesystem::path& target,
              const DownloadOptions& options = {});

}  // namespace pumice
