package main

// The built-in println needs the runtime only, so a probe compiles little.
func main() { println("hello from go") }
