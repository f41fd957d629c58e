//! Real PostgreSQL servers, scripted clients and lying servers for tests
