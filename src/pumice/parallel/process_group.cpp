#include "pumice/parallel/process_group.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "pumice/core/atomic_file.h"
#include "pumice/core/error.h"
#include "pumice/parallel/heartbeat.h"
#include "pumice/parallel/meeting_point.h"

namespace pumice {
namespace {

constexpr std::int64_t piece_bytes = 16 << 20;
// Gloo's own patience: the heartbeat knows better who is slow and who is gone.
constexpr std::chrono::hours no_limit{24 * 365};

constexpr std::chrono::seconds farewell{10};

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string numbered(const char* what, int rank) {
  return text(what, " ", rank);
}

// "2, 5"; throws Error if the meeting point is gone.
std::string missing_ranks(c10d::TCPStore& store, const std::vector<std::string>& names) {
  try {
    std::string missing;
    for (std::size_t rank = 0; rank < names.size(); ++rank) {
      if (!store.check({names[rank]})) missing += text(missing.empty() ? "" : ", ", rank);
    }
    return missing;
  } catch (const std::exception&) {
    fail("process of rank 0: ended before all had come; its own message says why");
  }
}

}  // namespace

void end_process(const std::string& sentence) {
  std::fprintf(stderr, "pumice: %s\n", sentence.c_str());
  std::fflush(stderr);
  remove_temporary_files();
  ::_exit(1);
}

struct ProcessGroup::Connections {
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::unique_ptr<Heartbeat> heartbeat;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;

  // A text of every process, by rank.
  std::vector<std::string> exchange(const std::string& name, int rank, int size,
                                    const std::string& own) {
    store->set(numbered(name.c_str(), rank), bytes_of(own));
    std::vector<std::string> all;
    for (int other = 0; other < size; ++other) {
      all.push_back(text_of(store->get(numbered(name.c_str(), other))));
    }
    return all;
  }
};

ProcessGroup::ProcessGroup() = default;

ProcessGroup::ProcessGroup(const Launch& launch, const ProcessGroupOptions& options)
    : rank_(launch.rank), size_(launch.size) {
  if (launch.alone()) return;
  connections_ = std::make_unique<Connections>();
  connections_->store = meet(launch, options.patience);
  wait_for_all(launch, options);
  connections_->store->setTimeout(no_limit);
  connections_->heartbeat = std::make_unique<Heartbeat>(
      noticeboard(launch, options.patience), rank_, size_, options.heartbeat,
      options.on_loss ? options.on_loss : [rank = rank_](const std::string& sentence) {
        end_process(text("rank ", rank, ": ", sentence));
      });
  guarded([&] { connect(launch); });
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::wait_for_all(const Launch& launch, const ProcessGroupOptions& options) {
  c10d::TCPStore& store = *connections_->store;
  if (store.add(numbered("arrivals", rank_), 1) > 1) {
    fail("RANK: ", rank_, " came twice to ", launch.host, " port ", launch.port,
         ", must be another for each process; or another run is using that port");
  }
  store.set(numbered("arrived", rank_), bytes_of(std::to_string(size_)));
  std::vector<std::string> names;
  for (int rank = 0; rank < size_; ++rank) names.push_back(numbered("arrived", rank));
  try {
    store.wait(names, options.patience);
  } catch (const std::exception&) {
    const std::string missing = missing_ranks(store, names);
    // The meeting point goes with rank 0; those who came at the same time find out by themselves.
    if (first()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    fail("processes of rank ", missing, ": did not come to ", launch.host, " port ", launch.port,
         " within ", std::chrono::duration_cast<std::chrono::seconds>(options.patience).count(),
         " s, must be started too");
  }
  for (const std::string& name : names) {
    const std::string size = text_of(store.get(name));
    if (size == std::to_string(size_)) continue;
    fail("WORLD_SIZE: ", size_, " here and ", size, " in another process, must be the same");
  }
}

void ProcessGroup::connect(const Launch& launch) {
  Connections& all = *connections_;
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  const bool by_interface = interface && *interface;
  const std::string address = by_interface ? "" : own_address(launch);
  const std::string host = host_identity();
  const std::vector<std::string> hosts = all.exchange("host", rank_, size_, host);
  const std::vector<std::string> addresses = all.exchange("address", rank_, size_, address);
  sharing_memory_ = static_cast<int>(std::count(hosts.begin(), hosts.end(), host));
  const bool one_host = sharing_memory_ == size_;
  for (int rank = 0; rank < size_ && !one_host; ++rank) {
    const std::string& other = addresses[static_cast<std::size_t>(rank)];
    if (!is_loopback_address(other)) continue;
    fail("MASTER_ADDR: '", launch.host, "' leads to ", other, " on the host of rank ", rank,
         ", which other hosts cannot reach; must be an address of rank 0 in the network, or name "
         "the interface with GLOO_SOCKET_IFNAME");
  }
  const std::vector<std::string> cores = all.exchange("cores", rank_, size_, cores_identity());
  sharing_cores_ = static_cast<int>(
      std::count(cores.begin(), cores.end(), cores[static_cast<std::size_t>(rank_)]));

  const auto options = c10d::ProcessGroupGloo::Options::create(no_limit);
  options->threads = 2;
  options->devices.push_back(by_interface
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(address));
  all.gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>("gloo", all.store), rank_, size_, options);
}

bool ProcessGroup::connected() const {
  assert(connections_ || alone());  // nobody is there any more after close()
  return connections_ != nullptr;
}

// Whatever fails between processes is first explained: who is gone?
template <typename Work>
void ProcessGroup::guarded(const Work& work) {
  try {
    work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(connections_->heartbeat->find_out(first_line(error.what())));
  }
}

void ProcessGroup::sum(at::Tensor& values) {
  if (!connected()) return;
  assert(values.is_contiguous() && values.is_floating_point());
  const at::Tensor flat = values.view({-1});
  const std::int64_t piece = piece_bytes * 4 / values.element_size();
  guarded([&] {
    for (std::int64_t begin = 0; begin < flat.numel(); begin += piece) {
      std::vector<at::Tensor> part{flat.narrow(0, begin, std::min(piece, flat.numel() - begin))};
      connections_->gloo->allreduce(part)->wait();
    }
  });
  summed_bytes_ += flat.numel() * flat.element_size();
  ++sums_;
}

void ProcessGroup::broadcast(at::Tensor& values) {
  if (!connected()) return;
  assert(values.is_contiguous());
  const at::Tensor flat = values.view({-1});
  const std::int64_t piece = piece_bytes * 4 / values.element_size();
  guarded([&] {
    for (std::int64_t begin = 0; begin < flat.numel(); begin += piece) {
      std::vector<at::Tensor> part{flat.narrow(0, begin, std::min(piece, flat.numel() - begin))};
      connections_->gloo->broadcast(part)->wait();
    }
  });
}

void ProcessGroup::gather(const at::Tensor& own, const std::vector<at::Tensor>& places) {
  assert(own.dim() == 2);
  if (first()) {
    assert(static_cast<int>(places.size()) == size_);
    at::Tensor place = places[0];
    place.copy_(own);
  }
  if (!connected()) return;
  // The same cut on both sides follows from the same shape.
  const auto rows_at_once = [](const at::Tensor& matrix) {
    return std::max<std::int64_t>(
        1, piece_bytes / std::max<std::int64_t>(1, matrix.size(1) * matrix.element_size()));
  };
  guarded([&] {
    if (!first()) {
      const std::int64_t step = rows_at_once(own);
      for (std::int64_t row = 0; row < own.size(0) && own.size(1) > 0; row += step) {
        std::vector<at::Tensor> part{
            own.narrow(0, row, std::min(step, own.size(0) - row)).contiguous()};
        connections_->gloo->send(part, 0, rank_)->wait();
      }
      return;
    }
    for (int rank = 1; rank < size_; ++rank) {
      at::Tensor place = places[static_cast<std::size_t>(rank)];
      const std::int64_t step = rows_at_once(place);
      for (std::int64_t row = 0; row < place.size(0) && place.size(1) > 0; row += step) {
        at::Tensor rows = place.narrow(0, row, std::min(step, place.size(0) - row));
        std::vector<at::Tensor> part{at::empty(rows.sizes(), rows.options())};
        connections_->gloo->recv(part, rank, rank)->wait();
        rows.copy_(part[0]);
      }
    }
  });
}

void ProcessGroup::barrier() {
  if (!connected()) return;
  guarded([&] { connections_->gloo->barrier()->wait(); });
}

void ProcessGroup::agree(const std::string& what, const std::string& value) {
  if (!connected()) return;
  std::vector<std::string> values;
  guarded([&] {
    values = connections_->exchange(text("agreement ", agreements_++), rank_, size_,
                                    text(what, "\n", value));
  });
  for (int rank = 1; rank < size_; ++rank) {
    const std::string& other = values[static_cast<std::size_t>(rank)];
    if (other == values[0]) continue;
    const auto said = [](const std::string& both) { return both.substr(both.find('\n') + 1); };
    fail(what, ": rank ", rank, " has ", said(other), ", rank 0 has ", said(values[0]),
         "; must be the same in all processes");
  }
}

void ProcessGroup::give_up(const std::string& reason) {
  if (connections_ && connections_->heartbeat) connections_->heartbeat->give_up(reason);
}

void ProcessGroup::close() {
  if (!connections_) return;
  barrier();
  connections_->heartbeat->stop();
  try {
    // The meeting point goes with rank 0, and whoever still beats would take that for a loss.
    const auto end = std::chrono::steady_clock::now() + farewell;
    std::int64_t left = connections_->store->add("left", 1);
    while (first() && left < size_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      left = connections_->store->add("left", 0);
    }
  } catch (const std::exception&) {
    // Rank 0 did not wait any longer; everything was said before.
  }
  connections_->gloo.reset();
  connections_.reset();
}

}  // namespace pumice
