#![no_std]
#![no_main]

#[punctual::app]
mod app {
    use punctual_bare::println;

    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[task(priority = 1, period = 100.millis(), local = [count: u32 = 0])]
    fn hello(cx: hello::Context) {
        *cx.local.count += 1;
        println!("Hello from {}: {}", punctual_bare::board::NAME, cx.local.count);
        if *cx.local.count == 3 {
            punctual::shutdown();
        }
    }
}
