//! One server connection: its login, the replies it owes, its cleaning
