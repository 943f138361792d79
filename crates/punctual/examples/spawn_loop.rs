//! A task may spawn itself: a loop in which all higher tasks can preempt.
//!
//! `foo` has left its slot when it starts, so a capacity of 1 is enough. Each round ends before the
//! next begins.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn(1).unwrap();
        (Shared {}, Local {})
    }

    #[task]
    fn foo(_: foo::Context, round: u32) {
        println!("round {round} starts");
        if round < 3 {
            foo::spawn(round + 1).unwrap();
        } else {
            punctual::shutdown();
        }
        println!("round {round} ends");
    }
}
