// A port of this host that nobody listens at.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>

namespace pumice::testing {

// Somebody else may take it before it is used; tests that run at the same time do not, since the
// system gives each asker another one.
inline std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  const bool done = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!done) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

}  // namespace pumice::testing
