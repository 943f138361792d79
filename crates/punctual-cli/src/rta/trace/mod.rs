//! `punctual rta --trace`: bounds of the threads of a recording.

pub(crate) mod actors;
mod combine;
mod infer;
mod json;
pub(crate) mod observe;
mod read;
mod text;

pub(super) use self::combine::add;
pub(super) use self::infer::run;

#[cfg(test)]
mod tests;
