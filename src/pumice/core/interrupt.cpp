#include "pumice/core/interrupt.h"

#include <csignal>

namespace pumice {
namespace {

volatile std::sig_atomic_t interrupt_requested = 0;

void request_interrupt(int signal_number) {
  interrupt_requested = 1;
  std::signal(signal_number, SIG_DFL);
}

}  // namespace

void listen_for_interrupts() {
  std::signal(SIGINT, request_interrupt);
  std::signal(SIGTERM, request_interrupt);
}

bool interrupted() {
  return interrupt_requested != 0;
}

}  // namespace pumice
