// Where processes find each other: a small store that rank 0 keeps and all can reach.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "pumice/parallel/heartbeat.h"
#include "pumice/parallel/launch.h"

namespace pumice {

// Rank 0 listens, on all of its interfaces; the others wait until it does. Throws Error, with
// address and port, if the port is taken or if nobody answers within `patience`.
c10::intrusive_ptr<c10d::TCPStore> meet(const Launch& launch, std::chrono::milliseconds patience);

// Another connection to the same store, for the heartbeat: a blocked call blocks its connection.
std::unique_ptr<Noticeboard> noticeboard(const Launch& launch, std::chrono::milliseconds patience);

// The address of this host that the others can reach: the one that it uses itself to reach
// `launch.host`. A name that is not resolvable, or no route, is an Error.
std::string own_address(const Launch& launch);

bool is_loopback_address(const std::string& address);

// The same for processes that run on the same cores of the same running system, and only for them.
std::string cores_identity();
// The same for processes on the same running system.
std::string host_identity();

}  // namespace pumice
