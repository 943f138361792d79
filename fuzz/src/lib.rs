//! Whole apps made up at random, and what every one of them has to keep to.
//!
//! [`generate`] writes the source of apps: tasks of every kind, resources, locks in any order, `idle`, hooks. It decides
//! what the compiler has to know. What the bodies *do* at their [points](job::Job::point) is decided anew in each run by
//! a [`script`]: spawn, cancel, wake, sleep, panic, shut down. So a few apps that are compiled once go a long way.
//!
//! Each run is a process of its own ([`child`]). It keeps its books in memory that it shares with the one that started it
//! ([`ledger`]), so they survive a process that is ended under its jobs. What is checked while it runs is in [`watch`],
//! what is checked at the end in `verdict` and [`runner`].

pub mod app;
pub mod child;
mod foreign;
pub mod generate;
pub mod job;
pub mod ledger;
pub mod random;
pub mod runner;
pub mod script;
mod timers;
pub mod token;
mod verdict;
pub mod wakers;
pub mod watch;
