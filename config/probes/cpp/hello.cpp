#include <iostream>

int main() { std::cout << "hello from cpp\n"; }
