//! Models of the partition's word that its CPU changes without locked instructions
//! (`process/port/linux/word`), and of the spare slot of a task, explored exhaustively.
//!
//! Threads change one word, each its own part of it. A step is one instruction of a thread, or an
//! action of the hardware or the kernel that is possible at any time: drain a store buffer, preempt
//! a thread, switch to another one from any CPU, or execute a barrier. All orders of all steps are
//! explored. In every state, a change has to be based on the word after the previous change, and so
//! has the test that permits it; a thread that looks for work after its change has to see all
//! changes before it; and at the end, the word has to contain all changes. In half of the models a
//! thread sets a flag before it changes the word, and no job starts by an instruction after that
//! change. Each of the conditions that the proof in `process/port/linux/word` uses is then dropped,
//! and the model has to find a violation.
//!
//! A separate package, which the workspace optimizes in the profile `dev`: an exploration has
//! millions of steps.

#[cfg(test)]
mod dropped;
#[cfg(test)]
mod explore;
#[cfg(test)]
mod hardware;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod spare;
#[cfg(test)]
mod tests;
