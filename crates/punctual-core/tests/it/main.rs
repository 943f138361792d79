//! The executor on ports made for tests.
#![cfg(not(loom))]

mod dispatch;
mod unwinding;
