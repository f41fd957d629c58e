//! Pause, resume, reconnect, kill: the console's commands as far as they concern one pool.

use model::Moment;

use crate::answer::{Ended, Killed, Opens};
use crate::pool::Pool;
use crate::slots::State;

impl<C: Clone, S: Clone> Pool<C, S> {
    /// Servers are closed as they become free, none is opened, and clients wait. Answers the idle ones, to close now.
    pub fn pause(&mut self) -> Vec<Ended<S>> {
        self.paused = true;
        self.end_idle()
    }

    /// Serves clients again.
    pub fn resume(&mut self, now: Moment) -> Opens {
        self.paused = false;
        self.opens(now)
    }

    /// Whether [`Pool::pause`] is in force.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether no server is left, nor one being opened or closed.
    pub fn is_drained(&self) -> bool {
        self.slots.in_use() == 0
    }

    /// Whether the pool holds neither server nor waiter, so that it may be dropped.
    pub fn is_empty(&self) -> bool {
        self.is_drained() && self.waiting() == 0
    }

    /// Every server there is, those being opened too, is to be closed as soon as it is free. Answers the idle ones, to
    /// close now.
    pub fn reconnect(&mut self) -> Vec<Ended<S>> {
        self.epoch = self.epoch.wrapping_add(1);
        self.end_idle()
    }

    /// How many servers from before the last [`Pool::reconnect`] are left.
    pub fn close_needed_left(&self) -> u32 {
        self.slots.used_indices().filter(|index| self.slots.at(*index).epoch != self.epoch).count() as u32
    }

    /// Ends everything at once. Servers being opened are closed when they are.
    pub fn kill(&mut self) -> Killed<C, S> {
        self.epoch = self.epoch.wrapping_add(1);
        let held = [State::Active, State::Tested, State::BeingCanceled, State::Idle];
        let indices: Vec<u32> = self.slots.used_indices().collect();
        let mut servers = Vec::new();
        for index in indices {
            if held.contains(&self.slots.at(index).state()) {
                servers.extend(self.end(index));
            }
        }
        Killed { servers, clients: self.refuse_waiting() }
    }

    /// Empties the queues: what waits will get no server.
    pub fn refuse_waiting(&mut self) -> Vec<C> {
        let waiters = std::iter::from_fn(|| self.queue.pop());
        let mut clients: Vec<C> = waiters.map(|waiter| waiter.client).collect();
        clients.extend(std::iter::from_fn(|| self.pin_queue.pop()).map(|waiter| waiter.client));
        clients
    }

    fn end_idle(&mut self) -> Vec<Ended<S>> {
        std::iter::from_fn(|| self.evict_idle()).collect()
    }
}
