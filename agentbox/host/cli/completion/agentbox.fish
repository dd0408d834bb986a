# Completion of agentbox for fish 3; printed by `agentbox completion fish`.

# Sets verbs, flags, values and kinds of a command; false if there is none.
function __agentbox_node
    switch "$argv"
@TABLE@
        case '*'
            return 1
    end
end

function __agentbox_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l path
    set -l given 0
    set -l pending
    set -l manifest
    __agentbox_node ''
    for word in $words[2..-1]
        if test -n "$pending"
            test "$pending" = --manifest; and set manifest --manifest $word
            set pending
            continue
        end
        switch $word
            case --
                return
            case '--manifest=*'
                set manifest $word
            case '-*'
                contains -- $word $__agentbox_values; and set pending $word
            case '*'
                if test (count $__agentbox_verbs) -gt 0; and __agentbox_node $path $word
                    set -a path $word
                else
                    set given (math $given + 1)
                end
        end
    end
    if test -n "$pending"
        __fish_complete_path $current
        return
    end
    set -l kind $__agentbox_kinds[(math $given + 1)]
    if string match -q -- '-*' $current
        printf '%s\n' $__agentbox_flags
    else if test (count $__agentbox_verbs) -gt 0
        printf '%s\n' $__agentbox_verbs
    else if test -n "$kind"
        $words[1] $manifest completion ids $kind -- "$current" 2>/dev/null </dev/null
    else
        __fish_complete_path $current
    end
end

complete -c agentbox -f -a '(__agentbox_complete)'
complete -c agentbox.sh -f -a '(__agentbox_complete)'
