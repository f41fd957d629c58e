//! Who a client is: passwords, SCRAM, certificates, rules; no sockets
