//! Sockets, threads, TLS, clocks, files: everything that touches the world
