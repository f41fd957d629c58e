//! A seeded simulation of clients, servers and their misfortunes
