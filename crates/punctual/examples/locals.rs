//! Locals belong to one handler and need no lock, whatever preempts it.
//!
//! They are fields of the `#[local]` struct, filled by `init`, or declared in the handler's own
//! list with their initial value. Both keep their values from job to job. Two handlers may declare
//! locals with the same name.

#[punctual::app]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {
        of_foo: String,
        of_idle: Vec<u32>,
    }

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        foo::spawn().unwrap();
        (Shared {}, Local { of_foo: String::from("f"), of_idle: vec![1, 2, 3] })
    }

    #[idle(local = [of_idle, calls: u64 = 100])]
    fn idle(cx: idle::Context) {
        cx.local.of_idle.push(4);
        *cx.local.calls += 1;
        println!("idle: {:?}, calls = {}", cx.local.of_idle, cx.local.calls);
        foo::spawn().unwrap();
    }

    #[task(priority = 1, capacity = 2, local = [of_foo, calls: u32 = 0])]
    fn foo(cx: foo::Context) {
        cx.local.of_foo.push('o');
        *cx.local.calls += 1;
        bar::spawn().unwrap();
        println!("foo: {}, calls = {}", cx.local.of_foo, cx.local.calls);
        if *cx.local.calls == 2 {
            punctual::shutdown();
        }
    }

    #[task(priority = 2, capacity = 2, local = [calls: u8 = 10, table: [u8; 4] = [0; 4]])]
    fn bar(cx: bar::Context) {
        *cx.local.calls += 1;
        cx.local.table[usize::from(*cx.local.calls % 4)] += 1;
        println!("bar: {:?}, calls = {}", cx.local.table, cx.local.calls);
    }
}
