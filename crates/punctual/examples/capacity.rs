//! `capacity` is the maximum number of waiting jobs of a task; a spawn beyond it returns its
//! arguments.
//!
//! The third spawn in `init` finds both slots taken. A job leaves its slot when it starts, so there
//! is room for another one while the first runs. Memory for the slots is reserved at compile time.

#[punctual::app]
mod app {
    use punctual::SpawnError;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        for n in 1..=3 {
            println!("init spawns {n}: {:?}", foo::spawn(n, "from init").map_err(SpawnError::into_inner));
        }
        (Shared {}, Local {})
    }

    #[task(capacity = 2)]
    fn foo(_: foo::Context, n: u32, origin: &'static str) {
        println!("foo {n} {origin}");
        match n {
            1 => println!("foo spawns 4: {:?}", foo::spawn(4, "from foo").map_err(SpawnError::into_inner)),
            4 => punctual::shutdown(),
            _ => {}
        }
    }
}
