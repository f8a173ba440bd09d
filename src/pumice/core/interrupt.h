// Ctrl-C as a request to stop at the next safe point. A second Ctrl-C ends the program at once.
#pragma once

namespace pumice {

void listen_for_interrupts();  // SIGINT and SIGTERM; call once, from main
bool interrupted();            // long loops ask, save what they have, and stop

}  // namespace pumice
