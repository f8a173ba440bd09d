#include "pumice/parallel/meeting_point.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "pumice/core/error.h"

namespace pumice {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Socket {
 public:
  Socket(int family, int type) : descriptor_(::socket(family, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, std::uint16_t port, int type, std::string& reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  addrinfo* list = nullptr;
  const int result = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (result != 0) {
    reason = ::gai_strerror(result);
    return nullptr;
  }
  return Addresses(list);
}

// Whether somebody listens there right now.
bool can_connect(const addrinfo& address, milliseconds patience, std::string& reason) {
  const Socket socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK);
  if (socket.get() < 0) {
    reason = std::strerror(errno);
    return false;
  }
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return true;
  int error = errno;
  if (error == EINPROGRESS) {
    pollfd waiting{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(patience.count())) == 1) {
      socklen_t size = sizeof error;
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    } else {
      error = ETIMEDOUT;
    }
  }
  if (error != 0) reason = std::strerror(error);
  return error == 0;
}

// LibTorch would wait, too, but complain on standard error every second meanwhile.
void wait_until_listening(const Launch& launch, milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  std::string reason;
  while (true) {
    if (const Addresses addresses = resolve(launch.host, launch.port, SOCK_STREAM, reason)) {
      for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
        if (can_connect(*address, milliseconds(2000), reason)) return;
      }
    }
    if (Clock::now() >= end) {
      fail("process of rank 0: nobody listens at ", launch.host, " port ", launch.port, " after ",
           std::chrono::duration_cast<std::chrono::seconds>(patience).count(), " s (", reason,
           "); all ", launch.size,
           " processes must be started, with the same MASTER_ADDR and "
           "MASTER_PORT");
    }
    std::this_thread::sleep_for(milliseconds(50));
  }
}

// Told apart from LibTorch's other failures by trying it first, without a word on standard error.
void check_port(const Launch& launch) {
  const Socket socket(AF_INET6, SOCK_STREAM);
  const bool both = socket.get() >= 0;
  const Socket old(AF_INET, SOCK_STREAM);
  const int descriptor = both ? socket.get() : old.get();
  const int on = 1;
  ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = htons(launch.port);
  sockaddr_in address4{};
  address4.sin_family = AF_INET;
  address4.sin_port = htons(launch.port);
  const int result =
      both ? ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address6), sizeof address6)
           : ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address4), sizeof address4);
  if (result != 0) {
    fail("MASTER_PORT: ", launch.port, " cannot be listened at, ", std::strerror(errno),
         "; must be a free port of rank 0's host");
  }
}

std::string address_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const void* number =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr)
          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  return ::inet_ntop(address.ss_family, number, out.data(), out.size()) ? out.data() : "";
}

class StoreNoticeboard final : public Noticeboard {
 public:
  explicit StoreNoticeboard(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}
  std::int64_t add(const std::string& name, std::int64_t value) override {
    return store_->add(name, value);
  }
  void write(const std::string& name, const std::string& text) override {
    store_->set(name, std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  bool has(const std::string& name) override { return store_->check({name}); }
  std::string read(const std::string& name) override {
    const std::vector<std::uint8_t> bytes = store_->get(name);
    return {bytes.begin(), bytes.end()};
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

c10::intrusive_ptr<c10d::TCPStore> connect(const Launch& launch, milliseconds patience,
                                           bool listening) {
  c10d::TCPStoreOptions options;
  options.port = launch.port;
  options.isServer = listening;
  options.waitWorkers = false;
  options.timeout = patience;
  try {
    return c10::make_intrusive<c10d::TCPStore>(launch.host, options);
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    fail("meeting point: ", launch.host, " port ", launch.port, " cannot be used, ",
         reason.substr(0, reason.find('\n')));
  }
}

}  // namespace

c10::intrusive_ptr<c10d::TCPStore> meet(const Launch& launch, milliseconds patience) {
  if (launch.rank == 0) {
    check_port(launch);
  } else {
    wait_until_listening(launch, patience);
  }
  return connect(launch, patience, launch.rank == 0);
}

std::unique_ptr<Noticeboard> noticeboard(const Launch& launch, milliseconds patience) {
  return std::make_unique<StoreNoticeboard>(connect(launch, patience, false));
}

std::string own_address(const Launch& launch) {
  std::string reason = "no address";
  const Addresses addresses = resolve(launch.host, launch.port, SOCK_DGRAM, reason);
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    // A datagram socket finds its route without sending anything.
    const Socket socket(address->ai_family, SOCK_DGRAM);
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (socket.get() >= 0 && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      return address_text(own);
    }
    reason = std::strerror(errno);
  }
  fail("MASTER_ADDR: '", launch.host, "' cannot be reached from here, ", reason);
}

bool is_loopback_address(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

std::string host_identity() {
  // Made anew at each start of the system, and the same in all of its containers.
  std::string identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity;
  if (!identity.empty()) return identity;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string cores_identity() {
  std::string identity = host_identity() + " ";
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed)) identity += text(core, ",");
    }
  }
  return identity;
}

}  // namespace pumice
