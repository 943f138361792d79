#[punctual::app(device = lm3s6965, dispatchers = [UART0, UART1])]
mod app {
    #[shared]
    struct Shared {}

    #[local]
    struct Local {}

    #[init]
    fn init(_: init::Context) -> (Shared, Local) {
        (Shared {}, Local {})
    }

    #[monotonic(binds = SysTick, default = true)]
    type Mono = Systick<1000>;

    #[task(binds = UART0, resources = [a])]
    fn uart(_: uart::Context) {}
}
